"""Weights of bilm-tf and AllenNLP as a model of ours, number for number.

    in   options, and arrays named as in `lm_weights.hdf5`
    out  an `OldModel`: bytes in, two LSTM stacks, nothing predicted (the softmax was never kept)

Three things are not as they are stored. TensorFlow's cell adds 1 to the forget gate at every step;
ours has it in the bias. Its gates stand in another order. And its highway's open gate lets the
changed input through where ours carries the old one on, so those weights change their sign.

In comments, P is `lstm.projection_dim`, H `lstm.dim`, F the number of filters, E the dimension of a
character's vector.
"""

import base64
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from polyseme.data.vocabulary import VocabularyConfig
from polyseme.legacy.old_model import (
    TENSORFLOW_GATES,
    WIDEST,
    FilterOptions,
    LstmOptions,
    OldModel,
    OptionsPart,
    Shapes,
    check_tensors,
    parse,
    settings_of,
    to_our_gates,
    unknown_keys,
    vocabulary_of,
)
from polyseme.legacy.weight_files import Floats
from polyseme.model import ModelConfig

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
