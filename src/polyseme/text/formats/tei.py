"""TEI and other XML: the text of paragraphs, lines of verse and headings, streamed.

The parser never builds a tree and refuses entity declarations, so a file can neither fill the
memory nor reach for other files. Metadata come from the TEI header: the first `<date>`,
`<author>`, `<title>` … named in the `meta` setting.
"""

from collections import Counter

from polyseme.text.formats.paragraphs import XML_FAULTS, Paragraphs, XmlParser, local_name
from polyseme.text.pieces import Piece
from polyseme.text.records import ReadItems, Rejected
from polyseme.text.settings import CorpusConfig
from polyseme.text.streams import read_blocks

_RECORDS = {"p", "l", "head", "ab", "u", "s", "title"}
_LEFT_OUT = {"note", "figDesc", "fw", "teiHeader"}


class _Reader:
    """Gathers items between two calls of the parser."""

    def __init__(self, piece: Piece, config: CorpusConfig) -> None:
        self.paragraphs = Paragraphs(piece.source.name, config.meta)
        self._name = self._own_document = piece.source.name
        self._wanted = set(config.meta)
        self._open: Counter[str] = Counter()  # elements around us, by name
        self._value_of = ""  # element of the header whose value is being read
        self._depth = 0  # of record elements around us
        self.parser = XmlParser(self._start, self._end, self._characters)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._open[tag] += 1
        own = next((v for k, v in attributes.items() if local_name(k) == "id"), None)
        if self._open["teiHeader"]:
            self._start_in_header(tag, attributes)
        elif tag == "TEI":
            self.paragraphs.values = {}
            self._own_document = f"{self._name}#{own}" if own else self._name
            self.paragraphs.document = self._own_document
        elif tag == "text":
            self.paragraphs.document = f"{self._name}#{own}" if own else self._own_document
        elif tag in _RECORDS:
            self._depth += 1
            self._space(is_needed=tag != "title")
        elif tag in ("lb", "pb", "cb"):
            self._space(is_needed=attributes.get("break") != "no")

    def _start_in_header(self, tag: str, attributes: dict[str, str]) -> None:
        if self._value_of or tag not in self._wanted or tag in self.paragraphs.values:
            return
        self.paragraphs.take_text()
        if "when" in attributes:
            self.paragraphs.values[tag] = attributes["when"]
        else:
            self._value_of = tag

    def _end(self, tag: str) -> None:
        if self._open["teiHeader"]:
            if tag == self._value_of and self._open[tag] == 1:
                value = " ".join(self.paragraphs.take_text().split())
                if value:
                    self.paragraphs.values[tag] = value
                self._value_of = ""
        elif tag in _RECORDS:
            self._depth -= 1
            self._space(is_needed=tag != "title")
            if self._depth == 0:
                self.paragraphs.finish(self.parser.place)
        self._open[tag] -= 1
        if not self._open[tag]:
            del self._open[tag]

    def _characters(self, data: str) -> None:
        is_text = self._depth and not any(self._open[tag] for tag in _LEFT_OUT)
        if is_text or self._value_of:
            self.paragraphs.add(data)

    def _space(self, *, is_needed: bool) -> None:
        """Keep apart what stands on two lines or in two sentences."""
        if is_needed:
            self._characters("\n")


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per paragraph, verse line or heading, whatever lies inside it."""
    reader = _Reader(piece, config)
    try:
        for block in read_blocks(piece.source, piece.start, piece.stop):
            reader.parser.feed(block)
            yield from reader.paragraphs.take()
        reader.parser.close()
        yield from reader.paragraphs.take()
    except XML_FAULTS as error:
        yield from reader.paragraphs.take()
        yield Rejected(reader.parser.place, "broken-file", "", f"the rest of the file: {error}")
