"""JSON lines: an object a line, each a document."""

from polyseme.limits import parse_json
from polyseme.text.formats.lines import TextLine, read_lines
from polyseme.text.formats.rows import record_of
from polyseme.text.pieces import Piece
from polyseme.text.records import BLANK, ReadItem, ReadItems, Rejected, quote
from polyseme.text.settings import CorpusConfig


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per line; what is not a JSON object is rejected by itself."""
    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            yield line
        elif line.is_blank:
            yield BLANK
        else:
            yield _item(line, f"{piece.source.name}@{line.start}", config)


def _item(line: TextLine, name: str, config: CorpusConfig) -> ReadItem:
    try:
        row = parse_json(line.text)
        if isinstance(row, dict):
            return record_of(row, line.start, name, config)
    except ValueError as error:
        return Rejected(line.start, "not-json", quote(line.text), str(error))
    return Rejected(line.start, "not-a-json-object", quote(line.text))
