"""How long the multiplications of an encoder take with nothing around them, one core."""

import statistics
import time
from collections.abc import Callable

import torch

from polyseme.encoders.encoder import EncoderConfig
from polyseme.encoders.inputs import CharacterInputConfig
from polyseme.encoders.lstm import LstmConfig

_ROWS = 128  # sentences side by side
_WORDS = 256  # built together
_POSITIONS = 10  # of a filter in a word of nine characters, its special tokens counted
_AT_ONCE = 1024  # words read by one multiplication
_REPEATS = 9


def bare_seconds(
    config: EncoderConfig, precision: str, *, positions: float, distinct: float
) -> float:
    """Seconds for each word, if `positions` are read and `distinct` words are built for each.

    What a layer reads is multiplied for many steps at once, its state step by step, as it must be.
    """
    dtype = getattr(torch, precision)
    lstm, letters = config.contextualizer, config.input
    assert isinstance(lstm, LstmConfig)
    assert isinstance(letters, CharacterInputConfig)
    hidden_size = lstm.hidden_size or lstm.proj_size

    def time_of(rows: int, depth: int, size: int, stacks: int = 2) -> float:
        """Seconds for each row."""
        read = torch.randn(stacks, rows, depth).to(dtype)
        weight = torch.randn(stacks, depth, size).to(dtype)
        into = torch.empty(stacks, rows, size, dtype=dtype)
        return _median(lambda: torch.bmm(read, weight, out=into)) / rows

    layer = time_of(_AT_ONCE, lstm.proj_size, 4 * hidden_size) + time_of(
        _ROWS, lstm.proj_size, 4 * hidden_size
    )
    layer += time_of(_ROWS, hidden_size, lstm.proj_size)
    window, features = letters.widest * letters.char_dim, letters.features
    word = _POSITIONS * time_of(_WORDS, window, features, 1)
    word += letters.num_highway_layers * time_of(_WORDS, features, 2 * features, 1)
    word += time_of(_WORDS, features, letters.dim, 1)
    return positions * lstm.num_layers * layer + distinct * word


def _median(multiply: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPEATS + 1):
        began = time.process_time()
        multiply()
        times.append(time.process_time() - began)
    return statistics.median(times[1:])
