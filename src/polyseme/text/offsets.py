"""Where the characters of normalized text stood before they were normalized.

    in   a text as it was given, the same text normalized, and what normalizes
    out  for each character of the normalized text the place of the one it was made from

Normalizing may join characters (é from e and an accent) or change the script, so a place in one
text is not the same place in the other. Whoever answers with places in a user's text needs both.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[np.int64]
_RUN = re.compile(r"\s+|\S+")


def original_offsets(original: str, normalized: str, normalize: Callable[[str], str]) -> Offsets:
    """(len(normalized),): never falling, each a place in `original`.

    Exact where a letter with its marks is normalized by itself as it is in its text. Where it is
    not (parts of Korean syllables written one by one), places are right to the word.
    """
    if normalized == original:
        return np.arange(len(original))
    for split in (_letters, _runs):
        units = list(split(original))
        known = {unit: len(normalize(unit)) for unit in dict.fromkeys(units)}
        lengths = [known[unit] for unit in units]
        if sum(lengths) == len(normalized):
            return _spread([len(unit) for unit in units], lengths)
    return _spread([len(original)], [len(normalized)])


def _letters(text: str) -> Iterator[str]:
    """Each character with its combining marks."""
    begin = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or not unicodedata.combining(text[place]):
            yield text[begin:place]
            begin = place


def _runs(text: str) -> Iterator[str]:
    """White space, and what stands between."""
    return (match[0] for match in _RUN.finditer(text))


def _spread(before: list[int], after: list[int]) -> Offsets:
    """Units of so many characters each, before and after: the places inside one go side by side,
    and what is left over stands at its last."""
    old, new = np.array(before, np.int64), np.array(after, np.int64)
    unit = np.repeat(np.arange(len(new)), new)
    inside = np.arange(int(new.sum())) - (np.cumsum(new) - new)[unit]
    found: Offsets = (np.cumsum(old) - old)[unit] + np.minimum(inside, old[unit] - 1)
    return found
