"""What all formats with named columns share: from a row's values to a record."""

from collections.abc import Mapping
from typing import Any

from polyseme.text.records import Blank, ReadItem, Record, Rejected, quote
from polyseme.text.settings import CorpusConfig


def record_of(row: Mapping[str, Any], place: int, name: str, config: CorpusConfig) -> ReadItem:
    """A row as a record. Its document is itself, under the name in the id column if there is one.

    `name` is the document's name where the user has no id column.
    """
    text = row.get(config.text_column)
    if text is None:
        return Rejected(place, "no-text", quote(str(dict(row))), f"no {config.text_column!r}")
    if not isinstance(text, str):
        return Rejected(place, "text-not-a-string", quote(repr(text)))
    if not text.strip():
        return Blank()
    if config.id_column is not None:
        own = row.get(config.id_column)
        if own is None or own == "":
            return Rejected(place, "no-id", quote(text), f"no {config.id_column!r}")
        name = _as_text(own)
    values = [row.get(column) for column in config.meta]
    meta = tuple(None if value is None else _as_text(value) for value in values)
    return Record(name, text, place, meta, opened=place)


def _as_text(value: Any) -> str:
    """The user's own values are carried as text, one type per column, fit for any shard."""
    return str(value).encode("utf-8", errors="backslashreplace").decode("utf-8")
