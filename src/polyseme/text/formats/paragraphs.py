"""Paragraphs out of elements: what TEI, HTML, EPUB and DOCX share.

`Paragraphs` gathers text until a format says that a paragraph ends. `XmlParser` never builds a
tree and refuses entity declarations, so a file can neither fill the memory nor reach for others.
"""

import html
from collections.abc import Callable, Iterable, Iterator
from xml.parsers import expat

from polyseme.limits import LONGEST_LINE
from polyseme.text.formats.lines import join_lines
from polyseme.text.records import BLANK, ReadItem, Record, RecordSize, Rejected, quote
from polyseme.text.streams import BrokenStreamError

# A parser remembers every open element; no text is nested so deep.
DEEPEST = 1000
# Nor are names of elements and attributes ever forgotten by the parsers, expat and libxml2.
MAX_NAMES = 100_000
LONGEST_NAME = 1_000
XML_FAULTS = (BrokenStreamError, expat.ExpatError, ValueError, LookupError)
"""What a parser raises; the last two for an encoding that it does not have, such as gb18030."""


class Paragraphs:
    """The paragraph that is being read, and the items that are finished."""

    def __init__(self, document: str, columns: tuple[str, ...]) -> None:
        self.document = document
        self.values: dict[str, str] = {}
        """Metadata of the document."""
        self.columns = columns
        self._items: list[ReadItem] = []
        self._text: list[str] = []
        self._size = RecordSize()
        self.num_finished = 0

    def add(self, text: str) -> None:
        """More text of the paragraph."""
        if text and self._size.add(len(text)):  # what goes beyond is rejected at its end
            self._text.append(text)

    def take_text(self) -> str:
        """The text so far, to be used for something else."""
        text = "".join(self._text)
        self._text.clear()
        self._size.clear()
        return text

    def finish(self, place: int | None = None, *, keeps_blank: bool = True) -> None:
        """End the paragraph. `place`: where that is in the file, else how many were before it."""
        is_too_long, detail = self._size.is_exceeded, self._size.excess
        text = self.take_text()
        if not is_too_long:
            # Line ends inside a paragraph are layout, not language.
            text = join_lines(" ".join(line.split()) for line in text.splitlines())
        if not (text or is_too_long or keeps_blank):
            return
        place = self.num_finished if place is None else place
        self.num_finished += 1
        if is_too_long:
            self._items.append(Rejected(place, "line-too-long", quote(text), detail))
        elif not text:
            self._items.append(BLANK)
        else:
            meta = tuple(self.values.get(key) for key in self.columns)
            self._items.append(Record(self.document, text, place, meta))

    def reject(self, reason: str, detail: str) -> None:
        """What could not be read stands here with the reason."""
        self.take_text()
        self._items.append(Rejected(self.num_finished, reason, "", detail))
        self.num_finished += 1

    def take(self) -> Iterator[ReadItem]:
        """The items finished since the last time."""
        yield from self._items
        self._items.clear()


class XmlParser:
    """Tells of elements by their local names, of text, and of nothing else."""

    def __init__(
        self,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None],
        characters: Callable[[str], None],
    ) -> None:
        self._on_start, self._on_end, self._on_characters = start, end, characters
        self._structure = Structure()
        self._fed = 0
        self._parser = expat.ParserCreate(None, "}")
        # Letters written as entities are then told to us, also where no DTD is named.
        self._parser.UseForeignDTD(True)
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = characters
        self._parser.EntityDeclHandler = self._refuse
        self._parser.SkippedEntityHandler = self._resolve

    @property
    def place(self) -> int:
        """The byte at which the parser is."""
        return max(self._parser.CurrentByteIndex, 0)

    def feed(self, block: bytes) -> None:
        """The next bytes of the file."""
        self._fed += len(block)
        self._parser.Parse(block, False)
        if self._fed - self.place > LONGEST_LINE:  # a tag or a comment that it has to hold
            raise BrokenStreamError(f"a tag longer than {LONGEST_LINE:,} bytes")

    def close(self) -> None:
        """The file ends here; an error if it should not."""
        self._parser.Parse(b"", True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._structure.enter(tag, attributes)
        self._on_start(local_name(tag), attributes)

    def _end(self, tag: str) -> None:
        self._structure.leave()
        self._on_end(local_name(tag))

    def _refuse(self, name: str, *_: object) -> None:
        raise BrokenStreamError(f"declares the entity {name!r}; entities are not read")

    def _resolve(self, name: str, is_parameter: bool) -> None:
        """An entity of a DTD we do not read: HTML's if it is one, otherwise as it is written."""
        if not is_parameter:
            self._on_characters(html.unescape(f"&{name};"))


class Structure:
    """What a parser must remember of the elements of a file; refused beyond all use."""

    def __init__(self) -> None:
        self._level = 0
        self._names: set[str] = set()

    def enter(self, tag: str, attributes: Iterable[str]) -> None:
        """An element begins."""
        self._level += 1
        if self._level > DEEPEST:
            raise BrokenStreamError(f"elements nested over {DEEPEST:,} deep")
        new = [name for name in (tag, *attributes) if name not in self._names]
        self._names.update(new)
        if len(self._names) > MAX_NAMES or max(map(len, new), default=0) > LONGEST_NAME:
            raise BrokenStreamError(
                f"over {MAX_NAMES:,} names of elements and attributes, or one with over "
                f"{LONGEST_NAME:,} letters"
            )

    def leave(self) -> None:
        """It ends."""
        self._level -= 1


def local_name(tag: str) -> str:
    """The name of an element or attribute without its namespace."""
    return tag.rpartition("}")[2]
