"""PropBank columns (CoNLL-2005, CoNLL-2012 and their like): who did what to whom.

    3   comes   VBZ   come   come.03   (V*)
    4   this    DT    -      -         (ARG1*
    5   story   NN    -      -         *)

A sentence has a column of bracketed arguments for each of its predicates, in their order; each
becomes an example of its own, with the predicate as target and the brackets as BIO labels.
"""

from pathlib import Path
from typing import Literal

from polyseme.config import Settings
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.readers.columns import Column, column_of
from polyseme.tasks.readers.lines import (
    ReaderItem,
    ReaderItems,
    blocks,
    cut,
    numbered_lines,
    without_comments,
)
from polyseme.tasks.texts import WordTuple
from polyseme.text.formats.tables import NumberedLine
from polyseme.text.records import Rejected, quote


class PropbankConfig(Settings):
    """A sentence's predicates, each with its arguments in a column."""

    kind: Literal["propbank"] = "propbank"
    word: Column = 2
    """Column of the word: 1 is the first, -1 the last."""
    predicate: Column = 5
    """Column that names the predicate (come.03), with - for words that are none."""
    arguments: Column = 6
    """First of the columns of arguments; there are as many as the sentence has predicates."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


def read(path: Path, config: PropbankConfig) -> ReaderItems:
    """An example per predicate. A sentence without any is counted as such and gives none."""
    for block in blocks(numbered_lines(path, config.encoding)):
        if isinstance(block, Rejected):
            yield block
        else:
            yield _sentence(without_comments(block), config)


def _sentence(lines: list[NumberedLine], config: PropbankConfig) -> ReaderItem:
    rows = [cut(line) for line in lines]
    words = [column_of(row, config.word) for row in rows]
    names = [column_of(row, config.predicate) for row in rows]
    places = [place for place, name in enumerate(names) if name != "-"]
    width = config.arguments - 1 + len(places)
    for line, row, word, name in zip(lines, rows, words, names, strict=True):
        if len(row) != width or word is None or name is None:
            detail = f"{len(row)} columns; with {len(places)} predicates {width} were expected"
            return Rejected(line.number, "wrong-number-of-columns", quote(line.text), detail)
    if not places:
        return Rejected(lines[0].number, "no-predicate", quote(lines[0].text))
    found = []
    for number, place in enumerate(places, start=config.arguments - 1):
        labels = _labels([row[number].strip() for row in rows])
        if isinstance(labels, int):
            line = lines[labels]
            return Rejected(line.number, "brackets-do-not-match", quote(line.text))
        found.append(Tagged(tuple(word or "" for word in words), labels, target_index=place))
    return tuple(found)


def _labels(brackets: list[str]) -> WordTuple | int:
    """Brackets as BIO labels, or the place where they go wrong: nested, unopened, or unclosed."""
    labels = []
    role = ""
    for place, bracket in enumerate(brackets):
        before, star, after = bracket.partition("*")
        if not star or after not in ("", ")") or (before and (role or before[0] != "(")):
            return place
        if before:
            role = before[1:]
            if not role or "(" in role:
                return place
        elif after and not role:
            return place
        labels.append("O" if not role else f"B-{role}" if before else f"I-{role}")
        role = "" if after else role
    return len(brackets) - 1 if role else tuple(labels)
