"""TEI and other XML: the text of paragraphs, lines of verse and headings, streamed.

The parser never builds a tree and refuses entity declarations, so a file can neither fill the
memory nor reach for other files. Metadata come from the TEI header: the first `<date>`,
`<author>`, `<title>` … named in the `meta` setting.
"""

from collections.abc import Iterator
from xml.parsers import expat

from polyseme.text.plan import Piece
from polyseme.text.records import Blank, Item, Items, Record, Rejected, quote
from polyseme.text.settings import CorpusConfig
from polyseme.text.streams import LONGEST_LINE, BrokenStreamError, read_blocks

_RECORDS = {"p", "l", "head", "ab", "u", "s", "title"}
_LEFT_OUT = {"note", "figDesc", "fw", "teiHeader"}


class _Reader:
    """Gathers items between two calls of the parser."""

    def __init__(self, piece: Piece, config: CorpusConfig) -> None:
        self.items: list[Item] = []
        self._name = piece.source.name
        self._config = config
        self._document = self._name
        self._header: dict[str, str] = {}
        self._path: list[str] = []
        self._text: list[str] = []
        self._length = 0
        self._depth = 0  # of record elements around us
        self.parser = expat.ParserCreate(None, "}")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._refuse

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition("}")[2]
        self._path.append(tag)
        if "teiHeader" in self._path:
            if tag in self._config.meta and tag not in self._header and "when" in attributes:
                self._header[tag] = attributes["when"]
            self._drop_text()
        elif tag == "text":
            own = next((v for k, v in attributes.items() if k.rpartition("}")[2] == "id"), None)
            self._document = f"{self._name}#{own}" if own else self._name
        elif tag in _RECORDS:
            self._depth += 1
        elif tag in ("lb", "pb", "cb"):
            self._text.append(" ")

    def _end(self, tag: str) -> None:
        tag = tag.rpartition("}")[2]
        if "teiHeader" in self._path:
            value = " ".join("".join(self._text).split())
            if tag in self._config.meta and value:
                self._header.setdefault(tag, value)
            self._drop_text()
        elif tag in _RECORDS:
            self._depth -= 1
            if self._depth == 0:
                self._finish()
        self._path.pop()

    def _characters(self, data: str) -> None:
        in_header = "teiHeader" in self._path
        if in_header or (self._depth and not _LEFT_OUT.intersection(self._path)):
            self._length += len(data)
            if self._length <= LONGEST_LINE:  # what goes beyond is rejected at its end
                self._text.append(data)

    def _finish(self) -> None:
        # Line ends inside a paragraph are layout, not language.
        text = " ".join("".join(self._text).split())
        is_too_long = self._length > LONGEST_LINE
        self._drop_text()
        place = self.parser.CurrentByteIndex
        if not text:
            self.items.append(Blank())
        elif is_too_long:
            self.items.append(Rejected(place, "line-too-long", quote(text)))
        else:
            meta = tuple(self._header.get(key) for key in self._config.meta)
            self.items.append(Record(self._document, text, place, meta))

    def _drop_text(self) -> None:
        self._text.clear()
        self._length = 0

    def _refuse(self, name: str, *_: object) -> None:
        raise BrokenStreamError(f"declares the entity {name!r}; entities are not read")


def read(piece: Piece, config: CorpusConfig) -> Items:
    """A record per paragraph, verse line or heading, whatever lies inside it."""
    reader = _Reader(piece, config)
    try:
        for block in _blocks(piece):
            reader.parser.Parse(block, False)
            yield from reader.items
            reader.items.clear()
        reader.parser.Parse(b"", True)
        yield from reader.items
    except (BrokenStreamError, expat.ExpatError) as error:
        yield from reader.items
        place = reader.parser.CurrentByteIndex
        yield Rejected(max(place, 0), "broken-file", "", f"the rest of the file: {error}")


def _blocks(piece: Piece) -> Iterator[bytes]:
    return read_blocks(piece.source, piece.start, piece.stop)
