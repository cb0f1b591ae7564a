"""Texts with several continuations or answers, of which one or more are right: JSON lines.

{"text": "She opened the door.", "choices": ["Nobody was there.", "It ate grass."], "label": 0}
"""

from pathlib import Path
from typing import Any, Literal

from polyseme.config import Settings
from polyseme.tasks.families.choice import MAX_CHOICES, Choices
from polyseme.tasks.readers.lines import (
    ReaderItem,
    ReaderItems,
    TableRow,
    json_lines,
    numbered_lines,
)
from polyseme.tasks.readers.table import text_of
from polyseme.text.records import Rejected, quote


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


def read(path: Path, config: ChoicesConfig) -> ReaderItems:
    """An example per line."""
    for row in json_lines(numbered_lines(path, config.encoding)):
        yield row if isinstance(row, Rejected) else _example(row, config)


def _example(row: TableRow, config: ChoicesConfig) -> ReaderItem:
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
