"""TEI and other XML: the text of paragraphs, lines of verse and headings, streamed.

The parser never builds a tree and refuses entity declarations, so a file can neither fill the
memory nor reach for other files. Metadata come from the TEI header: the first `<date>`,
`<author>`, `<title>` … named in the `meta` setting.
"""

import html
from collections import Counter
from xml.parsers import expat

from polyseme.limits import LONGEST_LINE
from polyseme.text.formats.lines import join_lines
from polyseme.text.pieces import Piece
from polyseme.text.records import Blank, ReadItem, ReadItems, Record, Rejected, quote
from polyseme.text.settings import CorpusConfig
from polyseme.text.streams import BrokenStreamError, read_blocks

_RECORDS = {"p", "l", "head", "ab", "u", "s", "title"}
_LEFT_OUT = {"note", "figDesc", "fw", "teiHeader"}
# The parser remembers every open element; no text is nested so deep.
DEEPEST = 1000


class _Reader:
    """Gathers items between two calls of the parser."""

    def __init__(self, piece: Piece, config: CorpusConfig) -> None:
        self.items: list[ReadItem] = []
        self._name = piece.source.name
        self._wanted = set(config.meta)
        self._columns = config.meta
        self._own_document = self._document = self._name
        self._header: dict[str, str] = {}
        self._open: Counter[str] = Counter()  # elements around us, by name
        self._level = 0
        self._value_of = ""  # element of the header whose value is being read
        self._text: list[str] = []
        self._length = 0
        self._depth = 0  # of record elements around us
        self.parser = expat.ParserCreate(None, "}")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = self._resolve

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition("}")[2]
        self._open[tag] += 1
        self._level += 1
        if self._level > DEEPEST:
            raise BrokenStreamError(f"elements nested over {DEEPEST:,} deep")
        own = next((v for k, v in attributes.items() if k.rpartition("}")[2] == "id"), None)
        if self._open["teiHeader"]:
            self._start_in_header(tag, attributes)
        elif tag == "TEI":
            self._header = {}
            self._own_document = self._document = f"{self._name}#{own}" if own else self._name
        elif tag == "text":
            self._document = f"{self._name}#{own}" if own else self._own_document
        elif tag in _RECORDS:
            self._depth += 1
            self._space(is_needed=tag != "title")
        elif tag in ("lb", "pb", "cb"):
            self._space(is_needed=attributes.get("break") != "no")

    def _start_in_header(self, tag: str, attributes: dict[str, str]) -> None:
        if self._value_of or tag not in self._wanted or tag in self._header:
            return
        self._drop_text()
        if "when" in attributes:
            self._header[tag] = attributes["when"]
        else:
            self._value_of = tag

    def _end(self, tag: str) -> None:
        tag = tag.rpartition("}")[2]
        if self._open["teiHeader"]:
            if tag == self._value_of and self._open[tag] == 1:
                value = " ".join("".join(self._text).split())
                if value:
                    self._header[tag] = value
                self._value_of = ""
                self._drop_text()
        elif tag in _RECORDS:
            self._depth -= 1
            self._space(is_needed=tag != "title")
            if self._depth == 0:
                self._finish()
        self._level -= 1
        self._open[tag] -= 1
        if not self._open[tag]:
            del self._open[tag]

    def _characters(self, data: str) -> None:
        is_text = self._depth and not any(self._open[tag] for tag in _LEFT_OUT)
        if is_text or self._value_of:
            self._length += len(data)
            if self._length <= LONGEST_LINE:  # what goes beyond is rejected at its end
                self._text.append(data)

    def _space(self, *, is_needed: bool) -> None:
        """Keep apart what stands on two lines or in two sentences."""
        if is_needed:
            self._characters("\n")

    def _finish(self) -> None:
        # Line ends inside a paragraph are layout, not language.
        text = join_lines(" ".join(line.split()) for line in "".join(self._text).splitlines())
        is_too_long = self._length > LONGEST_LINE
        self._drop_text()
        place = self.parser.CurrentByteIndex
        if is_too_long:
            self.items.append(Rejected(place, "line-too-long", quote(text)))
        elif not text:
            self.items.append(Blank())
        else:
            meta = tuple(self._header.get(key) for key in self._columns)
            self.items.append(Record(self._document, text, place, meta))

    def _drop_text(self) -> None:
        self._text.clear()
        self._length = 0

    def _refuse(self, name: str, *_: object) -> None:
        raise BrokenStreamError(f"declares the entity {name!r}; entities are not read")

    def _resolve(self, name: str, is_parameter: bool) -> None:
        """An entity of a DTD we do not read: HTML's if it is one, otherwise as it is written."""
        if not is_parameter:
            self._characters(html.unescape(f"&{name};"))


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per paragraph, verse line or heading, whatever lies inside it."""
    reader = _Reader(piece, config)
    try:
        for block in read_blocks(piece.source, piece.start, piece.stop):
            reader.parser.Parse(block, False)
            yield from reader.items
            reader.items.clear()
        reader.parser.Parse(b"", True)
        yield from reader.items
    except (BrokenStreamError, expat.ExpatError, ValueError, LookupError) as error:
        # The last two: an encoding that the parser does not have, such as gb18030.
        yield from reader.items
        place = reader.parser.CurrentByteIndex
        yield Rejected(max(place, 0), "broken-file", "", f"the rest of the file: {error}")
