"""How long the multiplications of an encoder take with nothing around them, one core."""

import statistics
import time
from collections.abc import Callable

import torch

from polyseme.encoders.encoder import EncoderConfig
from polyseme.encoders.inputs import CharacterInputConfig
from polyseme.encoders.lstm import LstmConfig

_ROWS = 128  # sentences side by side
_WORDS = 256  # spelt together
_PLACES = 10  # of a filter in a word of nine characters, its marks counted
_AT_ONCE = 1024  # words read by one multiplication
_REPEATS = 9


def bare_seconds(config: EncoderConfig, precision: str, *, places: float, distinct: float) -> float:
    """Seconds for each word, if `places` are read and `distinct` words spelt out for each.

    What a layer reads is multiplied for many steps at once, its state step by step, as it must be.
    """
    dtype = getattr(torch, precision)
    context, letters = config.context, config.input
    assert isinstance(context, LstmConfig)
    assert isinstance(letters, CharacterInputConfig)
    cells = context.cells or context.width

    def time_of(rows: int, depth: int, width: int, stacks: int = 2) -> float:
        """Seconds for each row."""
        read = torch.randn(stacks, rows, depth).to(dtype)
        weight = torch.randn(stacks, depth, width).to(dtype)
        into = torch.empty(stacks, rows, width, dtype=dtype)
        return _median(lambda: torch.bmm(read, weight, out=into)) / rows

    layer = time_of(_AT_ONCE, context.width, 4 * cells) + time_of(_ROWS, context.width, 4 * cells)
    layer += time_of(_ROWS, cells, context.width)
    size, features = letters.widest * letters.character_width, letters.features
    word = _PLACES * time_of(_WORDS, size, features, 1)
    word += letters.highways * time_of(_WORDS, features, 2 * features, 1)
    word += time_of(_WORDS, features, letters.width, 1)
    return places * context.layers * layer + distinct * word


def _median(multiply: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPEATS + 1):
        began = time.process_time()
        multiply()
        times.append(time.process_time() - began)
    return statistics.median(times[1:])
