"""Weights of bilm-tf and AllenNLP as a model of ours, number for number, and back.

    in   options, and arrays named as in `lm_weights.hdf5`
    out  an `OldModel`: bytes in, two LSTM stacks, nothing predicted (the softmax was never kept)
    and  of a model that reads bytes with an LSTM each way, what `options.json`, the weights' HDF5
         file and `vocab.txt` hold: what was read from such a file comes out as it was, bit for bit

Three things are not as they are stored. TensorFlow's cell adds 1 to the forget gate at every step;
ours has it in the bias (stored less 1 again on the way out, which may round its last bit). Its
gates stand in another order. And its highway's open gate lets the changed input through where ours
carries the old one on, so those weights change their sign.

In comments, P is `lstm.projection_dim`, H `lstm.dim`, F the number of filters, E the dimension of a
character's vector.
"""

import base64
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from polyseme.data.vocabulary import VocabularyConfig
from polyseme.encoders.inputs import CharacterInputConfig
from polyseme.encoders.lstm import LstmConfig
from polyseme.errors import ModelError
from polyseme.legacy.old_model import (
    TENSORFLOW_GATES,
    WIDEST,
    FilterOptions,
    LstmOptions,
    OldModel,
    OptionsPart,
    Shapes,
    check_tensors,
    from_our_gates,
    parse,
    settings_of,
    to_our_gates,
    unknown_keys,
    vocabulary_of,
)
from polyseme.legacy.weight_files import Floats
from polyseme.model import Model, ModelConfig

KIND = "bilm-tf / AllenNLP"
FORGET_BIAS = np.float32(1.0)
"""What TensorFlow's cell adds to the forget gate at every step and no file stores."""
STORED_BIAS = "stored_forget_bias"
"""Fact of a model: forget biases as they were in the file, since adding 1 rounds them away."""
CHARACTERS = "encoder.inputs.characters"
LAYERS = "encoder.contextualizer.layers"

NUM_CHARACTERS = 261
"""256 bytes and five special ids. `n_characters` may say 262: in use there is one more, all 0."""
EMBEDDING = "char_embed"
PROJECTION, PROJECTION_BIAS = "CNN_proj/W_proj", "CNN_proj/b_proj"


class EmbeddingOptions(OptionsPart):
    """The table of characters."""

    dim: int = Field(ge=1, le=WIDEST)
    """Dimension of a character's vector."""


class ByteOptions(FilterOptions):
    """`char_cnn` of bilm-tf: words from their bytes."""

    embedding: EmbeddingOptions
    """The table of bytes and special characters."""
    n_characters: Literal[261, 262] = 262
    """261 in training, 262 in use; the tensors are the same."""


class BilmOptions(OptionsPart):
    """The whole of `options.json`."""

    lstm: LstmOptions
    """The layers with context."""
    char_cnn: ByteOptions
    """From bytes to layer 0."""


def read_bilm(
    options: BilmOptions,
    arrays: Mapping[str, Floats],
    *,
    path: Path,
    words: list[str] | None = None,
) -> OldModel:
    """The model that these options and arrays, read from `path`, are."""
    heads = [name for name in arrays if "softmax" in name]
    arrays = {name: array for name, array in arrays.items() if name not in heads}
    check_tensors(arrays, shapes_of(options, arrays), path)
    longest = options.char_cnn.max_characters_per_token
    vocabulary = vocabulary_of(words or [], kind="bytes", max_characters=longest)
    weights = dict(_input_weights(options, arrays))
    stored = []
    for layer in range(options.lstm.n_layers):
        ours = _layer_weights(arrays, layer)
        stored.append(_forget(ours["bias"]).copy())
        _forget(ours["bias"])[:] += FORGET_BIAS
        weights |= {f"{LAYERS}.{layer}.{name}": array for name, array in ours.items()}
    return OldModel(
        kind=KIND,
        config=parse(ModelConfig, _settings(options, arrays, vocabulary.config), path),
        vocabulary=vocabulary,
        weights=weights,
        notes=tuple(_notes(options, heads, has_words=words is not None)),
        metadata={STORED_BIAS: pack(np.stack(stored))},
    )


def pack(biases: Floats) -> str:
    """Numbers as text for a manifest, bit for bit."""
    return base64.b64encode(biases.astype("<f4").tobytes()).decode("ascii")


def unpack(text: str) -> Floats:
    """The numbers that were packed, in one row."""
    return np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32)


def _forget(bias: Floats) -> Floats:
    """(2, 4H) -> (2, H), a view: the forget gate's part."""
    hidden_size = bias.shape[-1] // 4
    return bias[:, hidden_size : 2 * hidden_size]


def _settings(
    options: BilmOptions, arrays: Mapping[str, Floats], vocabulary: VocabularyConfig
) -> dict[str, Any]:
    lstm, cnn = options.lstm, options.char_cnn
    characters = cnn.characters(
        char_dim=cnn.embedding.dim,
        projected_to=lstm.projection_dim if is_input_projected(options, arrays) else None,
    )
    contextualizer = lstm.contextualizer(
        projected=is_output_projected(options, arrays), residual=lstm.use_skip_connections
    )
    return settings_of(vocabulary, {"kind": "characters", **characters}, contextualizer)


def _input_weights(
    options: BilmOptions, arrays: Mapping[str, Floats]
) -> Iterator[tuple[str, Floats]]:
    yield f"{CHARACTERS}.char_embedding.weight", arrays[EMBEDDING]
    for number in range(len(options.char_cnn.filters)):
        weight, bias = (arrays[name] for name in filter_names(number))
        yield f"{CHARACTERS}.filters.{number}.weight", _own(weight[0].transpose(2, 1, 0))
        yield f"{CHARACTERS}.filters.{number}.bias", bias
    for number in range(options.char_cnn.n_highway):
        weight, bias = (arrays[name] for name in highway_names(number, "transform"))
        gate, gate_bias = (-arrays[name] for name in highway_names(number, "carry"))
        ours = f"{CHARACTERS}.highways.{number}.linear"
        yield f"{ours}.weight", np.concatenate([weight.T, gate.T])
        yield f"{ours}.bias", np.concatenate([bias, gate_bias])
    if is_input_projected(options, arrays):
        yield f"{CHARACTERS}.projection.weight", _own(arrays[PROJECTION].T)
        yield f"{CHARACTERS}.projection.bias", arrays[PROJECTION_BIAS]


def _layer_weights(arrays: Mapping[str, Floats], layer: int) -> dict[str, Floats]:
    """One layer's, both directions stacked; the forget bias as it is stored."""
    names = [cell_names(direction, layer) for direction in (0, 1)]
    weight = np.stack([to_our_gates(arrays[name], TENSORFLOW_GATES) for name, _, _ in names])
    bias = np.stack([to_our_gates(arrays[name], TENSORFLOW_GATES) for _, name, _ in names])
    proj_size = weight.shape[1] // 2
    ours = {
        "weight_ih": _own(weight[:, :proj_size]),  # rows: inputs first, then the hidden state
        "weight_hh": _own(weight[:, proj_size:]),
        "bias": bias,
    }
    if names[0][2] in arrays:
        ours["weight_hr"] = np.stack([arrays[name] for _, _, name in names])
    return ours


def _own(view: Floats) -> Floats:
    return np.ascontiguousarray(view)


def _notes(options: BilmOptions, heads: list[str], *, has_words: bool) -> Iterator[str]:
    told = "in the file but not used" if heads else "not in the file"
    yield f"The softmax is {told}: the model can embed, not predict."
    if not has_words:
        yield "There is no list of words. None is needed: all words have vectors."
    unknown = list(unknown_keys(options))
    if unknown:
        yield f"Unknown options were ignored: {', '.join(unknown[:20])}."


# What the file holds


def filter_names(number: int) -> tuple[str, str]:
    """Weight and bias of the filters of one width."""
    return f"CNN/W_cnn_{number}", f"CNN/b_cnn_{number}"


def highway_names(number: int, part: str) -> tuple[str, str]:
    """Weight and bias of a highway's `carry` or `transform`."""
    return f"CNN_high_{number}/W_{part}", f"CNN_high_{number}/b_{part}"


def cell_names(direction: int, layer: int) -> tuple[str, str, str]:
    """Weight, bias and projection of a layer; direction 0 is forward, 1 backward."""
    cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
    return f"{cell}/W_0", f"{cell}/B", f"{cell}/W_P_0"


def is_input_projected(options: BilmOptions, names: Collection[str] = ()) -> bool:
    """Whether filters are projected: unless there are P of them; then the `names` in the file tell.

    bilm-tf leaves such a projection out, AllenNLP cannot do without.
    """
    is_needed = options.char_cnn.features != options.lstm.projection_dim
    return is_needed or PROJECTION in names


def is_output_projected(options: BilmOptions, names: Collection[str] = ()) -> bool:
    """Whether cells are projected: unless there are P of them; then the `names` tell."""
    is_needed = options.lstm.dim != options.lstm.projection_dim
    return is_needed or cell_names(0, 0)[2] in names


def shapes_of(options: BilmOptions, names: Collection[str] = ()) -> Shapes:
    """Every array of a file with these options, and with these `names` in it, if they are known."""
    cnn, proj_size, hidden_size = options.char_cnn, options.lstm.projection_dim, options.lstm.dim
    shapes: Shapes = {EMBEDDING: (NUM_CHARACTERS, cnn.embedding.dim)}
    for number, (reach, filters) in enumerate(cnn.filters):
        weight, bias = filter_names(number)
        shapes |= {weight: (1, reach, cnn.embedding.dim, filters), bias: (filters,)}
    for number in range(cnn.n_highway):
        for part in ("carry", "transform"):
            weight, bias = highway_names(number, part)
            shapes |= {weight: (cnn.features, cnn.features), bias: (cnn.features,)}
    if is_input_projected(options, names):
        shapes |= {PROJECTION: (cnn.features, proj_size), PROJECTION_BIAS: (proj_size,)}
    for direction in (0, 1):
        for layer in range(options.lstm.n_layers):
            weight, bias, projection = cell_names(direction, layer)
            shapes |= {weight: (2 * proj_size, 4 * hidden_size), bias: (4 * hidden_size,)}
            if is_output_projected(options, names):
                shapes[projection] = (hidden_size, proj_size)
    return shapes


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
        change = max(change, float(np.abs(forget + FORGET_BIAS - _forget(bias)).max()))
        arrays |= _layer_arrays(weights, layer, forget)
    return Exported(
        _options(model, input_config, lstm),
        {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()},
        [*_SPECIAL_TOKENS, *model.vocabulary.words.to_pylist()],
        tuple(_export_notes(model, change)),
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
    _forget(bias)[:] = forget
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


def _without_forget_bias(bias: Floats, stored: Floats | None) -> Floats:
    """(2, H) what, with 1 added, is our forget bias; where it still is, what was read."""
    ours = _forget(bias)
    less = ours - FORGET_BIAS
    return less if stored is None else np.where(stored + FORGET_BIAS == ours, stored, less)


def _export_notes(model: Model, change: float) -> Iterator[str]:
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
