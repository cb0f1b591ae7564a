"""What all readers of examples begin with: numbered lines, blocks of them, and named rows.

Compressed files, encodings, overlong lines and broken files are handled in `text`;
here they only get line numbers.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from polyseme.config import build
from polyseme.errors import InputError
from polyseme.limits import parse_json
from polyseme.tasks.families.family import Example
from polyseme.text.formats.lines import read_lines
from polyseme.text.formats.tables import NumberedLine, read_rows
from polyseme.text.plan import Piece
from polyseme.text.records import RecordSize, Rejected, quote
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import find_sources

LONGEST_BLOCK = 10_000
"""Lines; more without a blank line is no sentence but a file of another kind."""


class Noted(NamedTuple):
    """Examples that are used, and what is remarkable in them: counted, and told."""

    examples: tuple[Example, ...]
    note: str


ReaderItem: TypeAlias = tuple[Example, ...] | Noted | Rejected
ReaderItems: TypeAlias = Iterator[ReaderItem]
"""What readers give: for every unit of the file its examples, or why it has none. The place of
what is rejected is a line number, from 1."""
Lines: TypeAlias = Iterator[NumberedLine | Rejected]


def numbered_lines(path: Path, encoding: str) -> Lines:
    """Every line of a file, blank ones too; one that cannot be read comes as `Rejected`."""
    if not path.is_file():
        raise InputError(f"There is no file {path} (looked in {Path.cwd()}).")
    values = {"language": "und", "format": "text", "encoding": encoding}
    config = build(CorpusConfig, values)
    source = find_sources([str(path)], config).sources[0]
    piece = Piece(source, 0, source.bytes, source.bytes)
    for number, line in enumerate(read_lines(piece, config), start=1):
        if isinstance(line, Rejected):
            yield Rejected(number, line.reason, line.quote, line.detail)
        else:
            yield NumberedLine(number, line.text)


def of_lines(path: Path, encoding: str, item: Callable[[NumberedLine], ReaderItem]) -> ReaderItems:
    """What `item` makes of each line that is not blank."""
    for line in numbered_lines(path, encoding):
        if isinstance(line, Rejected):
            yield line
        elif line.text.strip():
            yield item(line)


def blocks(lines: Iterable[NumberedLine | Rejected]) -> Iterator[list[NumberedLine] | Rejected]:
    """Runs of lines up to a blank one, without it. A line that cannot be read spoils its run."""
    block: list[NumberedLine] = []
    size = RecordSize(LONGEST_BLOCK)
    fault: Rejected | None = None
    for line in lines:
        if isinstance(line, Rejected):
            fault = fault or line
        elif line.text.strip():
            if size.add(len(line.text)):
                block.append(line)
            else:
                detail = f"{size.excess} without a blank line"
                fault = fault or Rejected(block[0].number, "too-long", "", detail)
        elif block or fault:
            yield fault or block
            block, fault = [], None
            size.clear()
    if block or fault:
        yield fault or block


def without_comments(block: list[NumberedLine]) -> list[NumberedLine]:
    """A sentence in columns without the comments before it: `# sent_id = 7`.

    A line that begins so but has as many columns as the last is a word, for # is one.
    """
    width = len(cut(block[-1]))
    first = 0
    while block[first].text.startswith("# ") and len(cut(block[first])) != width:
        first += 1  # ends at the last line at the latest
    return block[first:]


def cut(line: NumberedLine) -> list[str]:
    """The columns of a line: between tabs if it has any, otherwise between spaces.

    Only the plain space parts columns: in Chinese files a full-width space may be the word.
    """
    if "\t" in line.text:
        return line.text.split("\t")
    return [column for column in line.text.split(" ") if column]


class TableRow(NamedTuple):
    """Values by column, and the line they stand on, from 1."""

    number: int
    values: dict[str, Any]


TableRows: TypeAlias = Iterator[TableRow | Rejected]


def json_lines(lines: Lines) -> TableRows:
    """An object a line; what is not a JSON object is rejected by itself."""
    for line in lines:
        if isinstance(line, Rejected):
            yield line
        elif line.text.strip():
            try:
                values = parse_json(line.text)
                json.dumps(values, ensure_ascii=False).encode()  # half a character is no text
            except (ValueError, RecursionError) as error:
                yield Rejected(line.number, "not-json", quote(line.text), str(error))
                continue
            if isinstance(values, dict):
                yield TableRow(line.number, values)
            else:
                yield Rejected(line.number, "not-a-json-object", quote(line.text))


def delimited(
    lines: Lines,
    *,
    separator: str,
    is_quoted: bool,
    has_header: bool,
    asked: Sequence[str],
    name: str,
) -> TableRows:
    """Rows of CSV or TSV. Every column `asked` for must be there; unnamed ones are 1, 2, 3."""
    columns: list[str] | None = None
    quoting = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    for row in read_rows(lines, delimiter=separator, quoting=quoting):
        if isinstance(row, Rejected):
            yield row
            continue
        number, fields = row
        if not any(field.strip() for field in fields):
            continue
        if columns is None:
            columns = fields if has_header else [str(n) for n in range(1, len(fields) + 1)]
            _check(columns, asked, f"{name}, line {number}")
            if has_header:
                continue
        if len(fields) != len(columns):
            detail = f"{len(fields)} fields instead of {len(columns)}"
            yield Rejected(number, "wrong-number-of-fields", quote(separator.join(fields)), detail)
        else:
            yield TableRow(number, dict(zip(columns, fields, strict=True)))


def _check(columns: list[str], asked: Sequence[str], place: str) -> None:
    for column in asked:
        if columns.count(column) != 1:
            raise InputError(
                f"{place}: expected one column {column!r}, found {', '.join(columns)}. Say which "
                "column holds what; columns are called 1, 2, 3 if you say there is no header."
            )
