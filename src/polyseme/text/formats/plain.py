"""Plain text in its layouts (see `CorpusConfig.layout`)."""

from polyseme.text.formats.lines import TextLine, join_lines, read_lines
from polyseme.text.pieces import Piece
from polyseme.text.records import BLANK, ReadItems, Record, Rejected
from polyseme.text.settings import CorpusConfig

# Characters; more without a blank line is no paragraph but a file without any.
LONGEST_PARAGRAPH = 1 << 20


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """Records of a plain text. A document that is not the whole file is named after the byte at
    which it begins."""
    match piece.source.layout:
        case "wrapped":
            return _wrapped(piece, config)
        case "articles":
            return _articles(piece, config)
        case "lines":
            return _unwrapped(piece, config, each_is_a_document=True)
        case _:
            return _unwrapped(piece, config, each_is_a_document=False)


def _articles(piece: Piece, config: CorpusConfig) -> ReadItems:
    document = None
    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            yield line
        elif line.is_blank:
            document = None
            yield BLANK
        else:
            document = document or f"{piece.source.name}@{line.start}"
            yield Record(document, line.text, line.start, (None,) * len(config.meta))


def _unwrapped(piece: Piece, config: CorpusConfig, *, each_is_a_document: bool) -> ReadItems:
    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            yield line
        elif line.is_blank:
            yield BLANK
        else:
            name = piece.source.name
            document = f"{name}@{line.start}" if each_is_a_document else name
            yield Record(document, line.text, line.start, (None,) * len(config.meta))


def _wrapped(piece: Piece, config: CorpusConfig) -> ReadItems:
    held: list[TextLine] = []
    size = 0

    def joined() -> Record:
        text = join_lines(line.text for line in held)
        nothing = (None,) * len(config.meta)
        return Record(piece.source.name, text, held[0].start, nothing, units=len(held))

    for line in read_lines(piece, config):
        is_text = isinstance(line, TextLine) and not line.is_blank
        if held and (not is_text or size > LONGEST_PARAGRAPH):
            yield joined()
            held, size = [], 0
        if isinstance(line, Rejected):
            yield line
        elif line.is_blank:
            yield BLANK
        else:
            held.append(line)
            size += len(line.text)
    if held:
        yield joined()
