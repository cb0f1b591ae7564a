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
from polyseme.legacy.bilm import CHARACTERS, FORGET_BIAS, LAYERS, STORED_BIAS, unpack
from polyseme.legacy.contents import Floats
from polyseme.legacy.layout import (
    EMBEDDING,
    PROJECTION,
    PROJECTION_BIAS,
    cell_names,
    filter_names,
    highway_names,
)
from polyseme.legacy.tensors import TENSORFLOW_GATES, from_our_gates
from polyseme.model import Model

_MARKS = ("<S>", "</S>", "<UNK>")  # bilm-tf wants them in its list, and first


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
    reading, context = config.encoder.input, config.encoder.context
    assert isinstance(reading, CharacterInputConfig)
    assert isinstance(context, LstmConfig)
    weights = {name: each.cpu().numpy() for name, each in model.network.state_dict().items()}
    arrays = dict(_input_arrays(reading, weights))
    change = 0.0
    for layer in range(context.layers):
        bias = weights[f"{LAYERS}.{layer}.bias"]
        stored = _stored(model, layer, bias.shape[1] // 4)
        forget = _without_forget_bias(bias, stored)
        change = max(change, float(np.abs(forget + FORGET_BIAS - _forget_part(bias)).max()))
        arrays |= _layer_arrays(weights, layer, forget)
    return Exported(
        _options(model, reading, context),
        {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()},
        [*_MARKS, *model.lexicon.words.to_pylist()],
        tuple(_notes(model, change)),
    )


def _misfits(model: Model) -> Iterator[str]:
    """What their files have no word for."""
    encoder, lexicon = model.config.encoder, model.config.lexicon
    reading, context = encoder.input, encoder.context
    if not isinstance(reading, CharacterInputConfig):
        yield f"its input is '{reading.kind}', and theirs is characters alone"
        return
    if lexicon.characters != "bytes":
        yield f"its characters are '{lexicon.characters}', and theirs are bytes"
    if not isinstance(context, LstmConfig):
        yield f"its context is '{context.kind}', and theirs is an LSTM"
        return
    if encoder.direction != "apart":
        yield f"it reads '{encoder.direction}', and theirs reads each way apart"
    if encoder.segments:
        yield "it tells two sentences apart, and theirs reads one"
    if reading.projected and reading.width != context.width:
        yield (
            f"its characters give {reading.width} dimensions, which are projected once more "
            f"to {context.width}; theirs has one projection"
        )
    if context.cells is None and context.output_clip is not None:
        yield "its outputs are clipped without being projected, and theirs are clipped only then"


def _options(model: Model, reading: CharacterInputConfig, context: LstmConfig) -> dict[str, Any]:
    return {
        "lstm": {
            "cell_clip": context.cell_clip,
            "dim": context.cells or context.width,
            "n_layers": context.layers,
            "proj_clip": context.output_clip,
            "projection_dim": context.width,
            "use_skip_connections": context.residual,
        },
        "char_cnn": {
            "activation": reading.activation,
            "embedding": {"dim": reading.character_width},
            "filters": [[filters.width, filters.number] for filters in reading.filters],
            "max_characters_per_token": model.config.lexicon.max_characters,
            "n_characters": 262,  # what loaders ask for; training programs say 261
            "n_highway": reading.highways,
        },
    }


def _input_arrays(
    reading: CharacterInputConfig, weights: dict[str, Floats]
) -> Iterator[tuple[str, Floats]]:
    yield EMBEDDING, weights[f"{CHARACTERS}.characters.weight"]
    for number in range(len(reading.filters)):
        weight, bias = filter_names(number)
        yield weight, weights[f"{CHARACTERS}.filters.{number}.weight"].transpose(2, 1, 0)[None]
        yield bias, weights[f"{CHARACTERS}.filters.{number}.bias"]
    for number in range(reading.highways):
        ours = f"{CHARACTERS}.highways.{number}.both"
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
    cells = bias.shape[1] // 4
    bias[:, cells : 2 * cells] = forget
    both = [weights[f"{ours}.{part}_weight"] for part in ("input", "state")]
    kernel = from_our_gates(np.concatenate(both, axis=1), TENSORFLOW_GATES)
    arrays = {}
    for direction in (0, 1):
        names = cell_names(direction, layer)
        arrays[names[0]] = kernel[direction]
        arrays[names[1]] = from_our_gates(bias, TENSORFLOW_GATES)[direction]
        if f"{ours}.projection" in weights:
            arrays[names[2]] = weights[f"{ours}.projection"][direction]
    return arrays


def _stored(model: Model, layer: int, cells: int) -> Floats | None:
    """(2, H) the forget biases of the file that the model was read from, if it tells them."""
    try:
        stored: Floats = unpack(model.facts[STORED_BIAS]).reshape(-1, 2, cells)[layer]
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
    reading, context = model.config.encoder.input, model.config.encoder.context
    assert isinstance(reading, CharacterInputConfig)
    assert isinstance(context, LstmConfig)
    longest = model.config.lexicon.max_characters
    is_needed = reading.features != context.width
    if model.config.objective.kind != "nothing":
        yield "What it predicts with (the softmax) has no place in such a file and is left out."
    if change:
        yield f"Forget biases are rounded, by up to {change:.1e}: they are stored less 1."
    if context.cells is None or not (reading.projected or is_needed):
        yield "AllenNLP cannot read it: it always wants both projections."
    if (context.cells or context.width + 1) <= context.width or (
        reading.projected and not is_needed
    ):
        yield "bilm-tf cannot read it: it wants no projection where nothing gets narrower."
    if longest != 50:
        yield f"AllenNLP reads 50 bytes of every word, marks counted; this model reads {longest}."
