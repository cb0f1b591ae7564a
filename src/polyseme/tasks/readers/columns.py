"""A word a line in columns, a blank line between sentences: CoNLL-2000, CoNLL-2003, WNUT, and
the Chinese files with a character a line.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from polyseme.config import Settings
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.readers.lines import (
    ReaderItem,
    ReaderItems,
    blocks,
    cut,
    numbered_lines,
    without_comments,
)
from polyseme.text.formats.tables import NumberedLine
from polyseme.text.records import Rejected, quote

_DOCUMENT = "-DOCSTART-"
# The first character always belongs to the word, even if it is a digit: 210 is a 2 at place 10.
_NUMBERED = re.compile(r"(.\D*)[0-9]+")


def _is_column(value: int) -> int:
    if value == 0:
        raise ValueError("columns are counted from 1, or from -1 at the end")
    return value


Column = Annotated[int, AfterValidator(_is_column)]
"""Number of a column: 1 is the first, -1 the last."""


class ColumnsConfig(Settings):
    """Words in columns, one per line, split at tabs or, where a line has none, at spaces."""

    kind: Literal["columns"] = "columns"
    word: Column = 1
    """Column of the word: 1 is the first, -1 the last."""
    label: Column = -1
    """Column of the label: 1 is the first, -1 the last."""
    numbered: bool = False
    """Whether each character is followed by its place in its word (口0 腔1), as in the Weibo files;
    the number is taken off."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


def read(path: Path, config: ColumnsConfig) -> ReaderItems:
    """An example per sentence. Lines that only mark where a document begins are passed over."""
    for block in blocks(numbered_lines(path, config.encoding)):
        if isinstance(block, Rejected):
            yield block
            continue
        lines = [line for line in without_comments(block) if not line.text.startswith(_DOCUMENT)]
        if lines:
            yield _sentence(lines, config)


def _sentence(lines: list[NumberedLine], config: ColumnsConfig) -> ReaderItem:
    words, labels = [], []
    width = len(cut(lines[0]))
    for line in lines:
        columns = cut(line)
        if len(columns) != width:
            detail = f"{len(columns)} columns, the sentence begins with {width}"
            return Rejected(line.number, "wrong-number-of-columns", quote(line.text), detail)
        word, label = column_of(columns, config.word), column_of(columns, config.label)
        if word is None or label is None or width == 1:
            return Rejected(line.number, "no-word-or-label", quote(line.text))
        numbered = _NUMBERED.fullmatch(word) if config.numbered else None
        if config.numbered and numbered is None:
            return Rejected(line.number, "word-without-number", quote(line.text))
        words.append(numbered[1] if numbered else word)
        labels.append(label)
    return (Tagged(tuple(words), tuple(labels)),)


def column_of(columns: list[str], number: int) -> str | None:
    """The column with this number, as `Column` counts; None if it is missing or empty."""
    place = number - 1 if number > 0 else number
    if not -len(columns) <= place < len(columns):
        return None
    return columns[place].strip(" ") or None
