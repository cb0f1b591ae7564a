"""What is known of a file from outside it: from its name, or from a table beside the files.

in   sources, a pattern such as {year}_{author}_{title}, a CSV or TSV table with a column `file`
out  the same sources with their values, and which files no value was found for
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from polyseme.errors import ConfigError, InputError
from polyseme.limits import LimitError, read_bytes
from polyseme.text.formats.tables import NumberedLine, read_rows
from polyseme.text.records import LONGEST_VALUE, Rejected
from polyseme.text.sources import Source, without_endings
from polyseme.text.streams import encoding_of

TABLE_BYTES = 64 << 20
"""Of a table of metadata. A row for each of 400,000 files takes about as much."""
FILE = "file"
"""The column of the table that names the file."""
_FIELD = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class NamePattern:
    """Fields and what stands between them, as in `{year}_{author}`."""

    text: str
    fields: tuple[str, ...]
    literals: tuple[str, ...]
    """Before each field, and behind the last."""

    @classmethod
    def parse(cls, text: str) -> "NamePattern":
        """The pattern that is written so."""
        *parts, last = _FIELD.split(text)
        fields, literals = tuple(parts[1::2]), (*parts[::2], last)
        if not fields or not all(fields) or len(set(fields)) < len(fields):
            raise ConfigError(
                f"--name-pattern {text} does not name different fields. Write each in braces, as "
                "in {year}_{author}_{title}."
            )
        if any("{" in each or "}" in each for each in literals) or not all(literals[1:-1]):
            raise ConfigError(
                f"--name-pattern {text} is ambiguous: put a separator between fields, as in "
                "{year}_{author}, and use braces only around fields."
            )
        return cls(text, fields, literals)

    def values_in(self, name: str) -> dict[str, str] | None:
        """The values in a file's name, or None if it is not of this form.

        Of the name as many folders are looked at as the pattern has. Endings need not be in it.
        """
        path = PurePosixPath(name)
        tail = PurePosixPath(*path.parts[-1 - self.text.count("/") :])
        found = self._match(str(tail.with_name(without_endings(tail.name))))
        if found is None and self.literals[-1]:  # it may be the ending
            found = self._match(str(tail))
        return found

    def _match(self, text: str) -> dict[str, str] | None:
        first, *literals = self.literals
        if not text.startswith(first):
            return None
        text = text.removeprefix(first)
        values: dict[str, str] = {}
        for field, literal in zip(self.fields, literals, strict=True):
            is_last = field == self.fields[-1]
            if is_last and not text.endswith(literal):
                return None
            end = len(text) - len(literal) if is_last else text.find(literal)
            if end <= 0:
                return None
            values[field], text = text[:end].strip(), text[end + len(literal) :]
        return values


@dataclass(frozen=True)
class MetadataTable:
    """Rows by the file that they are of."""

    columns: tuple[str, ...]
    rows: dict[str, dict[str, str]]

    @classmethod
    def read(cls, path: Path, encoding: str = "utf-8") -> "MetadataTable":
        """A CSV or TSV file with a header; what separates its columns is seen there."""
        try:
            data = read_bytes(path, TABLE_BYTES)
            name, mark = encoding_of(data[:4], encoding)
            lines = io.StringIO(data[mark:].decode(name), newline=None).read().split("\n")
        except FileNotFoundError as error:
            raise InputError(f"There is no table {path} (--metadata).") from error
        except UnicodeError as error:
            raise InputError(
                f"{path} is not {encoding}. Save it as CSV in UTF-8, or say --encoding; a "
                "spreadsheet (.xlsx) is not read."
            ) from error
        except (OSError, LimitError) as error:
            raise InputError(f"The table {path} cannot be read: {error}.") from error
        return cls._of(path, lines)

    @classmethod
    def _of(cls, path: Path, lines: Sequence[str]) -> "MetadataTable":
        header = lines[0] if lines else ""
        delimiter = max(",;\t", key=header.count)
        quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
        numbered = (NumberedLine(i, line) for i, line in enumerate(lines, start=1))
        columns: list[str] = []
        rows: dict[str, dict[str, str]] = {}
        for row in read_rows(numbered, delimiter=delimiter, quoting=quoting):
            if isinstance(row, Rejected):
                raise InputError(f"{path} cannot be read: {row.detail}.")
            if not columns:
                columns = _checked_header(path, [each.strip() for each in row.fields])
            elif row.fields:
                if len(row.fields) != len(columns):
                    raise InputError(
                        f"{path}, line {row.number}: {len(row.fields)} fields, but the header has "
                        f"{len(columns)}."
                    )
                values = dict(zip(columns, (each.strip() for each in row.fields), strict=True))
                if any(len(value) > LONGEST_VALUE for value in values.values()):
                    raise InputError(
                        f"{path}, line {row.number}: a value has over {LONGEST_VALUE:,} characters."
                    )
                file = values.pop(FILE)
                if file in rows:
                    raise InputError(f"{path} has two rows for the file {file}. Remove one.")
                rows[file] = {name: value for name, value in values.items() if value}
        _checked_header(path, columns)  # there may be none
        return cls(tuple(name for name in columns if name != FILE), rows)

    def row_of(self, name: str) -> tuple[str, dict[str, str]] | None:
        """The row of a file: by its path, its name, or its name without the ending."""
        base = PurePosixPath(name).name
        for key in (name, base, without_endings(base)):
            if key in self.rows:
                return key, self.rows[key]
        return None


@dataclass(frozen=True)
class FileMetadata:
    """Where the values of files come from."""

    pattern: NamePattern | None = None
    table: MetadataTable | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that it gives."""
        fields = self.pattern.fields if self.pattern else ()
        return tuple(dict.fromkeys((*fields, *(self.table.columns if self.table else ()))))

    def add_to(self, sources: Sequence[Source]) -> tuple[list[Source], list[str]]:
        """The sources with their values, and what the user should know. The table comes first."""
        done, unmatched, without_row, used = [], [], [], set()
        for source in sources:
            values: dict[str, str | None] = dict.fromkeys(self.columns)
            if self.pattern:
                found = self.pattern.values_in(source.name)
                unmatched += [] if found else [source.name]
                values |= found or {}
            if self.table:
                row = self.table.row_of(source.name)
                without_row += [] if row else [source.name]
                used |= {row[0]} if row else set()
                values |= row[1] if row else {}
            done.append(replace(source, outside=tuple(values.items())))
        notices = []
        if self.pattern and unmatched:
            notices.append(_told(unmatched, sources, f"not named like {self.pattern.text}"))
        if self.table and without_row:
            notices.append(_told(without_row, sources, "not in the table of metadata"))
        if self.table and (spare := [name for name in self.table.rows if name not in used]):
            more = ", …" if len(spare) > 1 else ""
            notices.append(f"{len(spare):,} rows of metadata fit no file ({spare[0]}{more}).")
        return done, notices


def _checked_header(path: Path, columns: list[str]) -> list[str]:
    if FILE not in columns or not all(columns) or len(set(columns)) < len(columns):
        raise InputError(
            f"{path} needs a header with a column {FILE!r} and a different name for each other "
            f"one. It has: {', '.join(columns) or 'nothing'}."
        )
    return columns


def _told(names: Sequence[str], sources: Sequence[Source], what: str) -> str:
    verb = "is" if len(names) == 1 else "are"
    more = ", …" if len(names) > 1 else ""
    return (
        f"{len(names):,} of {len(sources):,} files ({names[0]}{more}) {verb} {what}, so its "
        "columns are empty there."
    )
