"""A text normalized for storing: one Unicode form, one Chinese script, no control characters; and
where its characters stood before.

Nothing is changed in silence: each kind of change is counted by the caller, and what cannot be
mended is rejected with the reason. Normalizing may join characters (é from e and an accent) or
change the script: whoever answers with offsets in a user's text needs both.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from polyseme.errors import InputError, MissingExtraError
from polyseme.text.settings import CorpusConfig

_SURROGATE = re.compile(r"[\ud800-\udfff]")
# All of Unicode's control characters but the tab; form feeds abound in text made from pages.
_CONTROL = re.compile(r"[\x01-\x08\x0a-\x1f\x7f-\x9f]")

# Normalising sorts the marks on one letter, in a time that grows with their square. Unicode's
# own limit for streams is 30 (UAX 15, stream-safe text); this many are no writing.
_PILE = re.compile(rb"[^\0]{256}")


class UnfitTextError(InputError):
    """Text that must not go into a shard. Its argument is the reason, as the quarantine has it."""

    @property
    def reason(self) -> str:
        """What is wrong with the text, in a word."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"This text cannot be read: {self.reason}. Is it binary data?"


def normalize(text: str, config: CorpusConfig) -> tuple[str, bool]:
    """The text as it will be stored, and whether control characters were replaced by spaces."""
    if "\0" in text:
        raise UnfitTextError("nul-character")  # binary data, or UTF-16 read as something else
    if _SURROGATE.search(text):
        raise UnfitTextError("lone-surrogate")
    spaced = _CONTROL.sub(" ", text)
    has_controls = spaced != text
    if config.script is not None:
        spaced = _converter(config.script)(spaced)
    if config.unicode_normalization is not None:
        if _PILE.search(bytes(map(unicodedata.combining, spaced))):
            raise UnfitTextError("piled-up-marks")
        spaced = unicodedata.normalize(config.unicode_normalization, spaced)
    return spaced, has_controls


def describe_script(config: CorpusConfig) -> dict[str, str]:
    """Which converter folded the script, with its version; empty if none did."""
    if config.script is None:
        return {}
    from importlib.metadata import version

    _converter(config.script)
    return {"name": "opencc", "version": version("opencc"), "script": config.script}


def in_other_scripts(text: str) -> list[str]:
    """Chinese in simplified and in traditional script, as far as that differs; none without the
    extra that converts it."""
    try:
        found = [_converter(script)(text) for script in ("simplified", "traditional")]
    except MissingExtraError:
        return []
    return [each for each in dict.fromkeys(found) if each != text]


@lru_cache(maxsize=2)
def _converter(script: str) -> Callable[[str], str]:
    try:
        import opencc
    except ImportError as error:
        raise MissingExtraError.of(
            "opencc", extra="zh", purpose="Folding Chinese script"
        ) from error
    convert: Callable[[str], str] = opencc.OpenCC(
        "t2s" if script == "simplified" else "s2t"
    ).convert
    return convert


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
