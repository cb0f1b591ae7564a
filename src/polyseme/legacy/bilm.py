"""Weights of bilm-tf and AllenNLP as a model of ours, number for number.

    in   options, and arrays named as in `lm_weights.hdf5`
    out  an `OldModel`: bytes in, two LSTM stacks, nothing predicted (the softmax was never kept)

Three things are not as they are stored. TensorFlow's cell adds 1 to the forget gate at every step;
ours has it in the bias. Its gates stand in another order. And its highway's open gate lets the
changed input through where ours carries the old one on, so those weights change their sign.
"""

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.data.vocabulary import VocabularyConfig
from polyseme.legacy.contents import Floats
from polyseme.legacy.layout import (
    EMBEDDING,
    PROJECTION,
    PROJECTION_BIAS,
    cell_names,
    filter_names,
    highway_names,
    is_input_projected,
    is_output_projected,
    shapes_of,
)
from polyseme.legacy.old import OldModel, settings_of, vocabulary_of
from polyseme.legacy.options import BilmOptions, parse, unknown_keys
from polyseme.legacy.tensors import TENSORFLOW_GATES, check_tensors, to_our_gates
from polyseme.model import ModelConfig

KIND = "bilm-tf / AllenNLP"
FORGET_BIAS = np.float32(1.0)
"""What TensorFlow's cell adds to the forget gate at every step and no file stores."""
STORED_BIAS = "stored_forget_bias"
"""Fact of a model: forget biases as they were in the file, since adding 1 rounds them away."""
CHARACTERS = "encoder.inputs.characters"
LAYERS = "encoder.contextualizer.layers"


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
