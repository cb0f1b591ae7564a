"""A file of pairs of uses that people judged in, marked sentences and judgements out.

    .jsonl        an object a line: sentence1, sentence2, label; with word, or start1, end1, ...
    .tsv, .csv    a header line, then the same columns

A use is marked with asterisks in its sentence, or its word is named, or its characters are (start
and end, as SuperGLUE has them). Labels: true or false, T or F, 1 or 0, same or different.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from polyseme.errors import InputError
from polyseme.limits import FILE_BYTES, parse_json, read_text

_LABELS = {"true": True, "t": True, "1": True, "same": True,
           "false": False, "f": False, "0": False, "different": False}  # fmt: skip
_NEEDED = ("sentence1", "sentence2", "label")


class _Tabs(csv.excel_tab):
    """A quotation mark in a sentence is one, and nothing else."""

    quoting = csv.QUOTE_NONE


@dataclass(frozen=True)
class JudgedPair:
    """Two sentences, the use in each marked with asterisks or named, and whether they agree."""

    first: str
    second: str
    word: str
    is_same: bool


def read_pairs(path: Path) -> tuple[list[JudgedPair], int]:
    """All pairs that can be read, and how many cannot."""
    try:
        rows = list(_rows(path))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    found = [pair for pair in map(_pair, rows) if pair is not None]
    if not found:
        raise InputError(
            f"{path} has no pair that can be read. Expected: {', '.join(_NEEDED)} (true or false), "
            "in .jsonl or with a header in .tsv or .csv; the use marked with asterisks, or `word`."
        )
    return found, len(rows) - len(found)


def _rows(path: Path) -> Iterator[Any]:
    text = read_text(path, FILE_BYTES)
    if path.suffix in (".tsv", ".csv"):
        dialect = _Tabs if path.suffix == ".tsv" else csv.excel
        yield from csv.DictReader(StringIO(text), dialect=dialect)
        return
    for line in text.splitlines():
        if line.strip():
            try:
                yield parse_json(line)
            except ValueError:
                yield None


def _pair(row: Any) -> JudgedPair | None:
    if not isinstance(row, Mapping) or any(row.get(name) is None for name in _NEEDED):
        return None
    is_same = _LABELS.get(str(row["label"]).strip().casefold())
    first, second = (_marked(row, number) for number in ("1", "2"))
    if is_same is None or not (first and second):
        return None
    return JudgedPair(first, second, str(row.get("word") or row.get("lemma") or ""), is_same)


def _marked(row: Mapping[str, Any], number: str) -> str:
    """The sentence, with the use between asterisks if its characters are named."""
    text = str(row[f"sentence{number}"])
    try:
        begin, end = (int(row[f"{name}{number}"]) for name in ("start", "end"))
    except (KeyError, TypeError, ValueError):
        return text
    if not 0 <= begin < end <= len(text):
        return ""
    plain = text.replace("*", " ")  # or what stands there would be taken for a mark
    return f"{plain[:begin]}*{plain[begin:end]}*{plain[end:]}"
