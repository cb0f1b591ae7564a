"""A model of ours as bilm-tf and AllenNLP read it: options, arrays, and a list of words.

    in   a model that reads bytes with an LSTM each way
    out  what `options.json`, the weights' HDF5 file and `vocab.txt` hold

What was read from such a file comes out as it was, bit for bit. A forget bias of our own making is
stored less 1, as those programs add it, which may round its last bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.encoders.inputs import CharacterInputConfig
from polyseme.encoders.lstm import LstmConfig
from polyseme.errors import ModelError
from polyseme.legacy.bilm import (
    CHARACTERS,
    EMBEDDING,
    FORGET_BIAS,
    LAYERS,
    PROJECTION,
    PROJECTION_BIAS,
    STORED_BIAS,
    cell_names,
    filter_names,
    highway_names,
    unpack,
)
from polyseme.legacy.old_model import TENSORFLOW_GATES, from_our_gates
from polyseme.legacy.weight_files import Floats
from polyseme.model import Model

_SPECIAL_TOKENS = ("<S>", "</S>", "<UNK>")  # bilm-tf wants them in its list, and first


@dataclass(frozen=True)
class Exported:
    """What goes into the three files."""

    options: dict[str, Any]
    arrays: dict[str, Floats]
    words: list[str]
    notes: tuple[str, ...]


def export_bilm(model: Model) -> Exported:
    """The model in their names, or an error that says what they have no word for."""
    config = model.config
    for misfit in _misfits(model):
        raise ModelError(f"This model cannot be written as bilm-hdf5: {misfit}.")
    input_config, lstm = config.encoder.input, config.encoder.contextualizer
    assert isinstance(input_config, CharacterInputConfig)
    assert isinstance(lstm, LstmConfig)
    weights = {name: each.cpu().numpy() for name, each in model.network.state_dict().items()}
    arrays = dict(_input_arrays(input_config, weights))
    change = 0.0
    for layer in range(lstm.num_layers):
        bias = weights[f"{LAYERS}.{layer}.bias"]
        stored = _stored(model, layer, bias.shape[1] // 4)
        forget = _without_forget_bias(bias, stored)
        change = max(change, float(np.abs(forget + FORGET_BIAS - _forget_part(bias)).max()))
        arrays |= _layer_arrays(weights, layer, forget)
    return Exported(
        _options(model, input_config, lstm),
        {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()},
        [*_SPECIAL_TOKENS, *model.vocabulary.words.to_pylist()],
        tuple(_notes(model, change)),
    )


def _misfits(model: Model) -> Iterator[str]:
    """What their files have no word for."""
    encoder, vocabulary = model.config.encoder, model.config.vocabulary
    input_config, lstm = encoder.input, encoder.contextualizer
    if not isinstance(input_config, CharacterInputConfig):
        yield f"its input is '{input_config.kind}', and theirs is characters alone"
        return
    if vocabulary.characters != "bytes":
        yield f"its characters are '{vocabulary.characters}', and theirs are bytes"
    if not isinstance(lstm, LstmConfig):
        yield f"its contextualizer is '{lstm.kind}', and theirs is an LSTM"
        return
    if encoder.direction != "separate":
        yield f"its direction is '{encoder.direction}', and theirs is 'separate'"
    if encoder.segments:
        yield "it has segments for two sentences, and theirs reads one"
    if input_config.projected and input_config.dim != lstm.proj_size:
        yield (
            f"its characters give {input_config.dim} dimensions, which are projected once more "
            f"to {lstm.proj_size}; theirs has one projection"
        )
    if lstm.hidden_size is None and lstm.output_clip is not None:
        yield "its outputs are clipped without being projected, and theirs are clipped only then"


def _options(model: Model, input_config: CharacterInputConfig, lstm: LstmConfig) -> dict[str, Any]:
    return {
        "lstm": {
            "cell_clip": lstm.cell_clip,
            "dim": lstm.hidden_size or lstm.proj_size,
            "n_layers": lstm.num_layers,
            "proj_clip": lstm.output_clip,
            "projection_dim": lstm.proj_size,
            "use_skip_connections": lstm.residual,
        },
        "char_cnn": {
            "activation": input_config.activation,
            "embedding": {"dim": input_config.char_dim},
            "filters": [[filters.width, filters.num_filters] for filters in input_config.filters],
            "max_characters_per_token": model.config.vocabulary.max_characters,
            "n_characters": 262,  # what loaders ask for; training programs say 261
            "n_highway": input_config.num_highway_layers,
        },
    }


def _input_arrays(
    input_config: CharacterInputConfig, weights: dict[str, Floats]
) -> Iterator[tuple[str, Floats]]:
    yield EMBEDDING, weights[f"{CHARACTERS}.char_embedding.weight"]
    for number in range(len(input_config.filters)):
        weight, bias = filter_names(number)
        yield weight, weights[f"{CHARACTERS}.filters.{number}.weight"].transpose(2, 1, 0)[None]
        yield bias, weights[f"{CHARACTERS}.filters.{number}.bias"]
    for number in range(input_config.num_highway_layers):
        ours = f"{CHARACTERS}.highways.{number}.linear"
        changed, gate = np.split(weights[f"{ours}.weight"], 2)
        changed_bias, gate_bias = np.split(weights[f"{ours}.bias"], 2)
        weight, bias = highway_names(number, "transform")
        yield from ((weight, changed.T), (bias, changed_bias))
        weight, bias = highway_names(number, "carry")
        yield from ((weight, -gate.T), (bias, -gate_bias))
    for projection in (f"{CHARACTERS}.projection", "encoder.inputs.projection"):
        if f"{projection}.weight" in weights:
            yield PROJECTION, weights[f"{projection}.weight"].T
            yield PROJECTION_BIAS, weights[f"{projection}.bias"]


def _layer_arrays(weights: dict[str, Floats], layer: int, forget: Floats) -> dict[str, Floats]:
    ours = f"{LAYERS}.{layer}"
    bias = weights[f"{ours}.bias"].copy()
    hidden_size = bias.shape[1] // 4
    bias[:, hidden_size : 2 * hidden_size] = forget
    both = [weights[f"{ours}.{part}"] for part in ("weight_ih", "weight_hh")]
    kernel = from_our_gates(np.concatenate(both, axis=1), TENSORFLOW_GATES)
    arrays = {}
    for direction in (0, 1):
        names = cell_names(direction, layer)
        arrays[names[0]] = kernel[direction]
        arrays[names[1]] = from_our_gates(bias, TENSORFLOW_GATES)[direction]
        if f"{ours}.weight_hr" in weights:
            arrays[names[2]] = weights[f"{ours}.weight_hr"][direction]
    return arrays


def _stored(model: Model, layer: int, hidden_size: int) -> Floats | None:
    """(2, H) the forget biases of the file that the model was read from, if it tells them."""
    try:
        stored: Floats = unpack(model.metadata[STORED_BIAS]).reshape(-1, 2, hidden_size)[layer]
    except (KeyError, TypeError, ValueError, IndexError):
        return None  # facts may be edited by hand; nothing is lost but the last bit
    return stored


def _forget_part(bias: Floats) -> Floats:
    part: Floats = np.split(bias, 4, axis=1)[1]
    return part


def _without_forget_bias(bias: Floats, stored: Floats | None) -> Floats:
    """(2, H) what, with 1 added, is our forget bias; where it still is, what was read."""
    ours = _forget_part(bias)
    less = ours - FORGET_BIAS
    return less if stored is None else np.where(stored + FORGET_BIAS == ours, stored, less)


def _notes(model: Model, change: float) -> Iterator[str]:
    input_config, lstm = model.config.encoder.input, model.config.encoder.contextualizer
    assert isinstance(input_config, CharacterInputConfig)
    assert isinstance(lstm, LstmConfig)
    longest = model.config.vocabulary.max_characters
    is_needed = input_config.features != lstm.proj_size
    if model.config.objective.kind != "encoder_only":
        yield "The softmax is not part of such a file and is left out."
    if change:
        yield f"Forget biases are rounded, by up to {change:.1e}: they are stored less 1."
    if lstm.hidden_size is None or not (input_config.projected or is_needed):
        yield "AllenNLP cannot read it: it always wants both projections."
    if (lstm.hidden_size or lstm.proj_size + 1) <= lstm.proj_size or (
        input_config.projected and not is_needed
    ):
        yield "bilm-tf cannot read it: it wants no projection where nothing gets narrower."
    if longest != 50:
        yield f"AllenNLP reads 50 bytes of a word, its begin and end counted; this model {longest}."
