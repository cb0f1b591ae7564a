"""Rows with named columns (CSV, TSV, JSON lines): a text and its label, two texts and theirs, or a
text and another that is to be written for it. In JSON lines also a text with several continuations
or answers, of which one or more are right:

    {"text": "She opened the door.", "choices": ["Nobody was there.", "It ate grass."], "label": 0}
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from polyseme.config import Settings
from polyseme.errors import InputError
from polyseme.tasks.families.choice import MAX_CHOICES, Choices
from polyseme.tasks.families.classification import Classified, Paired
from polyseme.tasks.families.family import Text
from polyseme.tasks.families.seq2seq import Translated
from polyseme.tasks.readers.lines import (
    ReaderItem,
    ReaderItems,
    TableRow,
    TableRows,
    delimited,
    json_lines,
    numbered_lines,
)
from polyseme.text.records import Rejected, quote

TableFormat = Literal["csv", "tsv", "jsonl"]
_FORMATS: dict[str, TableFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_PACKED = {".gz", ".bz2", ".xz", ".zst"}


class TableConfig(Settings):
    """One example per row. Which columns are what; any others are ignored."""

    kind: Literal["table"] = "table"
    text: str = "text"
    """Column of the text, or of the first of two."""
    second: str | None = None
    """Column of the second text, where examples are pairs."""
    label: str = "label"
    """Column of the label."""
    target: str | None = None
    """Column of the text to be written, for sequence to sequence; there is no label then."""
    by_character: bool = False
    """Whether characters are the words of source and target, as is customary for Chinese."""
    format: TableFormat | None = None
    """csv, tsv, or jsonl (one object per line); by default detected from the file's name."""
    header: bool = True
    """Whether the first row names the columns (CSV, TSV). Without, they are called 1, 2, 3."""
    quoted: bool | None = None
    """Whether fields may be in double quotes, with quotes inside doubled; by default in CSV but
    not in TSV."""
    is_split: bool = False
    """Whether texts are words already, with spaces between them. A JSON list always is words."""
    reject_labels: tuple[str, ...] | None = None
    """Labels whose rows are rejected; by default - for pairs, which entailment sets
    have where the annotators did not agree."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""

    @model_validator(mode="after")
    def _one_purpose(self) -> "TableConfig":
        if self.second and self.target:
            raise ValueError("a row has a second text or a target, not both")
        return self


def read(path: Path, config: TableConfig) -> ReaderItems:
    """An example per row. A row without text or label, or with too few fields, is rejected."""
    for row in _rows(path, config):
        yield row if isinstance(row, Rejected) else _example(row, config)


def _rows(path: Path, config: TableConfig) -> TableRows:
    lines = numbered_lines(path, config.encoding)
    format_ = config.format or _format_of(path)
    if format_ == "jsonl":
        return json_lines(lines)
    is_quoted = format_ == "csv" if config.quoted is None else config.quoted
    asked = _text_columns(config) + ([] if config.target else [config.label])
    return delimited(
        lines,
        separator="," if format_ == "csv" else "\t",
        is_quoted=is_quoted,
        has_header=config.header,
        asked=asked,
        name=str(path),
    )


def _format_of(path: Path) -> TableFormat:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _PACKED]
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise InputError(
            f"{path} ends in none of {' '.join(_FORMATS)}. Say what it is: csv, tsv or jsonl."
        )
    return _FORMATS[suffixes[-1]]


def _text_columns(config: TableConfig) -> list[str]:
    other = config.target or config.second
    return [config.text] + ([other] if other else [])


def _example(row: TableRow, config: TableConfig) -> ReaderItem:
    asked = _text_columns(config)
    texts = [text_of(row.values.get(column), config.is_split) for column in asked]
    for text, column in zip(texts, asked, strict=True):
        if not text:
            return Rejected(row.number, "no-text", quote(str(row.values)), f"in column {column!r}")
    if config.target:
        return (Translated(texts[0], texts[1], config.by_character),)
    label = _label(row.values.get(config.label))
    if label is None:
        detail = f"in column {config.label!r}"
        return Rejected(row.number, "no-label", quote(str(row.values)), detail)
    rejected = ("-",) if config.second else ()
    if label in (rejected if config.reject_labels is None else config.reject_labels):
        return Rejected(row.number, f"label {label!r}", quote(str(row.values)))
    if config.second:
        return (Paired(texts[0], texts[1], label),)
    return (Classified(texts[0], label),)


def text_of(value: Any, is_split: bool) -> Text:
    """What a row has for a text: words or text as they are; empty for what is neither."""
    if isinstance(value, list):
        is_words = all(isinstance(word, str) and word.strip() for word in value)
        return tuple(value) if is_words else ()
    if not isinstance(value, str):
        return ()
    return tuple(value.split()) if is_split else value.strip()


def _label(value: Any) -> str | None:
    """A label as text; None if there is none."""
    if isinstance(value, str):
        return value.strip() or None
    return json.dumps(value) if isinstance(value, int | float) else None


class ChoicesConfig(Settings):
    """JSON lines: a text, a list of choices, and which of them is right."""

    kind: Literal["choices"] = "choices"
    text: str = "text"
    """Field with the context: a beginning, or a question."""
    choices: str = "choices"
    """Name of the list of continuations or answers."""
    label: str = "label"
    """Field with the right choice: its index from 0, its text, or a list of several."""
    is_split: bool = False
    """Whether texts are words already, with spaces between them. A JSON list always is words."""
    encoding: str = "utf-8"
    """Character encoding. A byte-order mark in the file overrides it."""


def read_choices(path: Path, config: ChoicesConfig) -> ReaderItems:
    """An example per line."""
    for row in json_lines(numbered_lines(path, config.encoding)):
        yield row if isinstance(row, Rejected) else _choices(row, config)


def _choices(row: TableRow, config: ChoicesConfig) -> ReaderItem:
    def rejected(reason: str, detail: str) -> Rejected:
        return Rejected(row.number, reason, quote(str(row.values)), detail)

    told = row.values.get(config.choices)
    if not isinstance(told, list) or not 2 <= len(told) <= MAX_CHOICES:
        return rejected("no-choices", f"{config.choices!r} is not a list of 2 to {MAX_CHOICES}")
    text = text_of(row.values.get(config.text), config.is_split)
    choices = tuple(text_of(each, config.is_split) for each in told)
    if not text or not all(choices):
        return rejected("no-text", f"{config.text!r} or one of {config.choices!r} is empty")
    label = row.values.get(config.label)
    right = {_number(each, told) for each in (label if isinstance(label, list) else [label])}
    if not right or -1 in right:
        return rejected("no-label", f"{config.label!r} names none of {len(told)} choices")
    return (Choices(text, choices, tuple(sorted(right))),)


def _number(label: Any, choices: list[Any]) -> int:
    """Which choice a label names, from 0; -1 if it is none of them."""
    if isinstance(label, str) and label in choices:
        return choices.index(label)
    if isinstance(label, str) and label.isdecimal() and len(label) < 9:
        label = int(label)
    is_number = isinstance(label, int) and not isinstance(label, bool)
    return label if is_number and 0 <= label < len(choices) else -1
