"""Spans of words and the ways to write them as one label per word.

    words   John  Smith  Paris  is       two adjacent names: PER at 0-2, LOC at 2-3
    iob1    I-PER I-PER  I-LOC  O        B- only between two adjacent spans of one kind
    bio     B-PER I-PER  B-LOC  O        B- at every beginning (also called IOB2)
    bioes   B-PER E-PER  S-LOC  O        E- at every end, S- for a single word
    bmes    B-PER E-PER  S-LOC  O        the same with M- for I-

Labels without a kind (B, I, O) are spans of kind "", as in word segmentation. No networks here.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from polyseme.errors import InputError

Scheme = Literal["iob1", "bio", "bioes", "bmes"]
OUTSIDE = "O"
_LABEL = re.compile(r"([BIMES])(?:-(.+))?", re.DOTALL)
_LETTERS: dict[Scheme, str] = {"iob1": "BI", "bio": "BI", "bioes": "BIES", "bmes": "BMES"}


class Span(NamedTuple):
    """Words from `start` up to but not including `stop`."""

    kind: str
    start: int
    stop: int


class _Label(NamedTuple):
    """A label taken apart. Outside every span its letter is O."""

    letter: str
    kind: str = ""


# Before the first word and after the last nothing is inside a span.
_EDGE = _Label(OUTSIDE)


def find_spans(labels: Iterable[str]) -> list[Span]:
    """The spans that labels of any scheme stand for, as conlleval and seqeval find them.

    Labels that break their scheme's rules still mean something: an I- after O, or after another
    kind, begins a span.
    """
    spans: list[Span] = []
    before, start = _EDGE, 0
    for place, label in enumerate([*map(_take_apart, labels), _EDGE]):
        is_end = label.letter == OUTSIDE or _begins(before, label)
        if is_end and before.letter != OUTSIDE:
            spans.append(Span(before.kind, start, place))
        if is_end:
            start = place
        before = label
    return spans


def write_labels(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """One label for each of `length` words. Spans must not overlap."""
    labels = [OUTSIDE] * length
    end = Span("", 0, 0)
    for span in sorted(spans, key=lambda span: span.start):
        assert end.stop <= span.start < span.stop <= length, f"{span} in {length} words, {end}"
        is_adjacent = end.kind == span.kind and 0 < end.stop == span.start
        letters = _letters(span.stop - span.start, scheme, is_adjacent=is_adjacent)
        tail = f"-{span.kind}" if span.kind else ""
        labels[span.start : span.stop] = [letter + tail for letter in letters]
        end = span
    return labels


def convert(labels: Sequence[str], scheme: Scheme) -> list[str]:
    """The same spans in another scheme, always by its rules, whatever the given labels did.

    A network that may never break the rules must learn from such labels only: to it, any other
    sequence is impossible.
    """
    return write_labels(find_spans(labels), len(labels), scheme)


@dataclass(frozen=True, slots=True)
class Transitions:
    """Which labels may begin a sentence, end it, and follow each other; labels by number."""

    start: tuple[bool, ...]
    stop: tuple[bool, ...]
    pair: tuple[tuple[bool, ...], ...]
    """`pair[i][j]`: label j may come right after label i."""


def transitions(labels: Sequence[str], scheme: Scheme) -> Transitions:
    """What a scheme's rules allow among these labels."""
    parts = [_take_apart(label) for label in labels]
    for label, part in zip(labels, parts, strict=True):
        if part.letter != OUTSIDE and part.letter not in _LETTERS[scheme]:
            raise InputError(f"The label {label!r} is not in the scheme {scheme!r}. Convert it.")
    return Transitions(
        start=tuple(_may_follow(_EDGE, part, scheme) for part in parts),
        stop=tuple(_may_follow(part, _EDGE, scheme) for part in parts),
        pair=tuple(tuple(_may_follow(a, b, scheme) for b in parts) for a in parts),
    )


def _take_apart(label: str) -> _Label:
    if label == OUTSIDE:
        return _Label(OUTSIDE)
    match = _LABEL.fullmatch(label)
    if match is None:
        raise InputError(
            f"The label {label!r} marks no span: expected O, or B- I- M- E- S- and a kind."
        )
    return _Label(match[1], match[2] or "")


def _begins(before: _Label, label: _Label) -> bool:
    """Whether a label, itself inside a span, begins a new one."""
    is_new = label.letter in "BS" or before.letter in "OES"
    return is_new or before.kind != label.kind


def _may_follow(before: _Label, label: _Label, scheme: Scheme) -> bool:
    is_same = before.letter != OUTSIDE and before.kind == label.kind
    if scheme == "iob1":
        return label.letter != "B" or is_same
    if scheme == "bio":
        return label.letter != "I" or is_same
    # A span is open after B and I (or M), and must go on; otherwise one may only begin.
    is_open, goes_on = before.letter in "BIM", label.letter in "IME"
    return is_open == goes_on and (is_same or not is_open)


def _letters(length: int, scheme: Scheme, *, is_adjacent: bool) -> str:
    """The letters of one span; `is_adjacent` says that one of its kind ends right before it."""
    if scheme == "iob1":
        return ("B" if is_adjacent else "I") + "I" * (length - 1)
    if scheme == "bio":
        return "B" + "I" * (length - 1)
    inside = "I" if scheme == "bioes" else "M"
    return "S" if length == 1 else "B" + inside * (length - 2) + "E"
