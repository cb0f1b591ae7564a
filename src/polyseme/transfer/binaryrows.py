"""The rows of word2vec's binary form: a word, a space, its numbers as little-endian float32."""

import itertools
from collections.abc import Callable, Iterator
from typing import IO

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
LONGEST_WORD = 4_096  # bytes; beyond it these are no words but numbers read at the wrong place
_CHUNK = 1 << 20


def binary_rows(
    stream: IO[bytes], width: int, *, wanted: Callable[[bytes, int], bool]
) -> Iterator[tuple[bytes, Floats | None]]:
    """Each whole row's word, and its numbers if they are wanted."""
    size = 4 * width
    held, place = b"", 0
    for number in itertools.count():
        while (space := held.find(b" ", place, place + LONGEST_WORD)) < 0 or (
            len(held) < space + 1 + size
        ):
            if space < 0 and len(held) - place >= LONGEST_WORD:
                return
            more = stream.read(_CHUNK)
            if not more:
                return
            held, place = held[place:] + more, 0
        raw = held[place:space].lstrip(b"\n")  # some writers end each row with a line end
        numbers = None
        if wanted(raw, number):
            numbers = np.frombuffer(held, "<f4", width, space + 1).astype(np.float32)
        yield raw, numbers
        place = space + 1 + size
