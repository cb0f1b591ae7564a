"""Lines of a piece, decoded, which all line-based formats begin with; and plain text in its layouts
(see `CorpusConfig.layout`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from polyseme.text.plan import Piece
from polyseme.text.records import BLANK, ReadItem, ReadItems, Record, Rejected, quote
from polyseme.text.segmenters.patterns import SPACELESS
from polyseme.text.settings import CorpusConfig
from polyseme.text.streams import (
    BrokenStreamError,
    encoding_of,
    newline_in,
    not_text,
    read_blocks,
    split_lines,
)


class TextLine(NamedTuple):
    """A line as text, without its line end."""

    start: int
    text: str

    @property
    def is_blank(self) -> bool:
        """No character but white space."""
        return not self.text.strip()


def read_lines(piece: Piece, config: CorpusConfig) -> Iterator[TextLine | Rejected]:
    """Lines in order; one that is too long or wrongly encoded comes as `Rejected`.

    A broken or bursting compressed file ends with one `Rejected` that stands for its rest, and
    what is no text at all is one `Rejected`.
    """
    blocks = read_blocks(piece.source, piece.start, piece.stop)
    first = b""
    try:
        while len(first) < 4 and (block := next(blocks, b"")):  # a byte-order mark has up to 4
            first += block
    except BrokenStreamError as error:
        yield Rejected(0, "broken-file", "", str(error))
        return
    head = first[:4]
    if piece.start:  # the byte-order mark stands at the beginning of the file
        with piece.source.path.open("rb") as file:
            head = file.read(4)
    encoding, mark = encoding_of(head, config.encoding)
    start = piece.start
    if start == 0:
        first, start = first[mark:], mark
    if fault := not_text(first, encoding):
        yield Rejected(piece.start, "not-text", "", fault)
        return

    def all_blocks() -> Iterator[bytes]:
        yield first
        yield from blocks

    last = start
    try:
        for line in split_lines(all_blocks(), newline=newline_in(encoding), start=start):
            last = line.start
            if line.too_long:
                yield Rejected(line.start, "line-too-long", quote(line.raw))
                continue
            try:
                text = line.raw.decode(encoding)
            except UnicodeError as error:
                yield Rejected(line.start, f"not-{encoding}", quote(line.raw), str(error))
                continue
            yield TextLine(line.start, text.removesuffix("\r"))
    except BrokenStreamError as error:
        yield Rejected(last, "broken-file", "", f"the rest after this line: {error}")


def join_lines(lines: Iterable[str]) -> str:
    """Lines of one paragraph as running text: Chinese goes on without a space, others with one."""
    text = ""
    for line in filter(None, (line.strip() for line in lines)):
        is_spaceless = SPACELESS.match(text[-1:]) and SPACELESS.match(line[:1])
        text += line if is_spaceless or not text else f" {line}"
    return text


# Characters; more without a blank line is no paragraph but a file without any.
LONGEST_PARAGRAPH = 1 << 20


def read_plain(piece: Piece, config: CorpusConfig) -> ReadItems:
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


def items_of_lines(
    piece: Piece, config: CorpusConfig, item: Callable[[TextLine], ReadItem]
) -> ReadItems:
    """What `item` makes of each line, beside those that are blank or rejected."""
    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            yield line
        elif line.is_blank:
            yield BLANK
        else:
            yield item(line)


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
    name = piece.source.name

    def record(line: TextLine) -> Record:
        document = f"{name}@{line.start}" if each_is_a_document else name
        return Record(document, line.text, line.start, (None,) * len(config.meta))

    return items_of_lines(piece, config, record)


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
