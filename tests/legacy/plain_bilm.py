"""bilm-tf's model in plain numpy, from its own arrays under their own names, one word at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyseme.legacy.weight_files import Floats

Values = Any


def _sigmoid(values: Values) -> Values:
    return 0.5 + 0.5 * np.tanh(values / 2)  # never overflows


def byte_ids(word: str | int, width: int) -> list[int]:
    """Ids as the program numbers them; 256 and 257 are BOS and EOS."""
    inside = [word] if isinstance(word, int) else list(word.encode())[: width - 2]
    return ([258, *inside, 259] + [260] * width)[:width]


def layer_0(options: Mapping[str, Any], arrays: Mapping[str, Floats], word: str | int) -> Values:
    cnn = options["char_cnn"]
    letters = arrays["char_embed"].astype("f8")[byte_ids(word, cnn["max_characters_per_token"])]
    parts = []
    for number, (width, _) in enumerate(cnn["filters"]):
        weight = arrays[f"CNN/W_cnn_{number}"][0].astype("f8")
        windows = [letters[n : n + width] for n in range(len(letters) - width + 1)]
        sums = [np.einsum("we,wen->n", window, weight) for window in windows]
        parts.append(np.max(sums, axis=0) + arrays[f"CNN/b_cnn_{number}"])
    found = np.concatenate(parts)
    found = np.tanh(found) if cnn["activation"] == "tanh" else np.maximum(found, 0)
    for number in range(cnn["n_highway"]):
        high = {name: arrays[f"CNN_high_{number}/{name}"].astype("f8") for name in _HIGHWAY}
        gate = _sigmoid(found @ high["W_carry"] + high["b_carry"])
        new = np.maximum(found @ high["W_transform"] + high["b_transform"], 0)
        found = gate * new + (1 - gate) * found
    if "CNN_proj/W_proj" in arrays:
        found = found @ arrays["CNN_proj/W_proj"].astype("f8") + arrays["CNN_proj/b_proj"]
    return found


_HIGHWAY = ("W_carry", "b_carry", "W_transform", "b_transform")


def _run(options: Mapping[str, Any], cell: Mapping[str, Values], inputs: Values) -> Values:
    clip, clip_output = options["cell_clip"] or np.inf, options["proj_clip"] or np.inf
    hidden, memory = np.zeros(options["projection_dim"]), np.zeros(options["dim"])
    outputs = []
    for vector in inputs:
        enter, new, forget, leave = np.split(
            np.concatenate([vector, hidden]) @ cell["W_0"] + cell["B"], 4
        )
        memory = _sigmoid(forget + 1) * memory + _sigmoid(enter) * np.tanh(new)
        memory = np.clip(memory, -clip, clip)
        hidden = _sigmoid(leave) * np.tanh(memory)
        if "W_P_0" in cell:
            hidden = np.clip(hidden @ cell["W_P_0"], -clip_output, clip_output)
        outputs.append(hidden)
    return np.array(outputs)


def layers_of(
    options: Mapping[str, Any], arrays: Mapping[str, Floats], sentence: list[str]
) -> Values:
    """(L, T, D) from a state of zeros."""
    lstm = options["lstm"]
    with_tokens: list[str | int] = [256, *sentence, 257]
    words = np.array([layer_0(options, arrays, word) for word in with_tokens])
    ways = []
    for direction in (0, 1):
        inputs = words[::-1] if direction else words
        found = [words]
        for layer in range(lstm["n_layers"]):
            prefix = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
            cell = {
                name.removeprefix(prefix): array.astype("f8")
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
            outputs = _run(lstm, cell, inputs)
            inputs = outputs + inputs if layer and lstm["use_skip_connections"] else outputs
            found.append(inputs[::-1] if direction else inputs)
        ways.append(found)
    return np.concatenate(ways, axis=-1)[:, 1:-1]
