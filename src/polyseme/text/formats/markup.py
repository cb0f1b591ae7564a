"""TEI and other XML, HTML, EPUB and DOCX: the text of their paragraphs, headings, list items and
table cells.

Left out is what is not running text: scripts, menus, forms, the readings above ruby characters,
tracked deletions, footnotes and page headers of Word. `title`, `author`, `date` and others named in
the `meta` setting come from the file's own description.

Nothing is unpacked or built as a tree, and entity declarations are refused: a file can neither fill
the memory nor reach for others. EPUB and DOCX are zip archives (`storage/archives.py`) of XML; HTML
is read by lxml, as it comes in.
"""

import codecs
import html
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar
from urllib.parse import unquote
from xml.parsers import expat

from polyseme.errors import extra_needed_for
from polyseme.limits import LONGEST_LINE, open_regular
from polyseme.storage.archives import Archive, ArchiveError, MissingMemberError
from polyseme.text.formats.lines import join_lines
from polyseme.text.plan import Piece
from polyseme.text.records import BLANK, ReadItem, ReadItems, Record, RecordSize, Rejected, quote
from polyseme.text.settings import CorpusConfig
from polyseme.text.streams import (
    BrokenStreamError,
    NotTextError,
    codec_of,
    encoding_of,
    not_text,
    read_blocks,
)

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


_RECORDS = {"p", "l", "head", "ab", "u", "s", "title"}
_LEFT_OUT = {"note", "figDesc", "fw", "teiHeader"}


class _TeiText:
    """Gathers items between two calls of the parser."""

    def __init__(self, piece: Piece, config: CorpusConfig) -> None:
        self.paragraphs = Paragraphs(piece.source.name, config.meta)
        self._name = self._own_document = piece.source.name
        self._wanted = set(config.meta)
        self._open: Counter[str] = Counter()  # elements around us, by name
        self._value_of = ""  # element of the header whose value is being read_tei
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
            if tag != "title":
                self._characters("\n")
        elif tag in ("lb", "pb", "cb") and attributes.get("break") != "no":
            self._characters("\n")  # keeps apart what stands on two lines

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
            if tag != "title":
                self._characters("\n")
            if self._depth == 0:
                self.paragraphs.finish(self.parser.place)
        self._open[tag] -= 1
        if not self._open[tag]:
            del self._open[tag]

    def _characters(self, data: str) -> None:
        is_text = self._depth and not any(self._open[tag] for tag in _LEFT_OUT)
        if is_text or self._value_of:
            self.paragraphs.add(data)


def read_tei(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per paragraph, verse line or heading, whatever lies inside it."""
    reader = _TeiText(piece, config)
    try:
        for block in read_blocks(piece.source, piece.start, piece.stop):
            reader.parser.feed(block)
            yield from reader.paragraphs.take()
        reader.parser.close()
        yield from reader.paragraphs.take()
    except XML_FAULTS as error:
        yield from reader.paragraphs.take()
        yield Rejected(reader.parser.place, "broken-file", "", f"the rest of the file: {error}")


LARGEST_PART = 512 << 20
"""Bytes of a chapter or of Word's text, unpacked; they are read in pieces."""
LARGEST_DESCRIPTION = 4 << 20
"""Bytes of what says which chapters there are, and who wrote them."""
MAX_ELEMENTS = 50_000
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
    "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "h1", "h2",
    "h3", "h4", "h5", "h6", "header", "hr", "html", "legend", "li", "main", "menu", "ol",
    "option", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead",
    "tr", "ul",
))  # fmt: skip
_NO_TEXT = frozenset((
    "audio", "button", "canvas", "datalist", "form", "iframe", "math", "nav", "noframes",
    "noscript", "object", "rp", "rt", "script", "select", "style", "svg", "template", "textarea",
    "video",
))  # fmt: skip
_ALIASES = {"creator": "author", "published_time": "date", "created": "date"}
_SNIFFED = 4096
_CHARSET = re.compile(rb"(?:charset|encoding)[ ]?=[ ]?[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_OLE = b"\xd0\xcf\x11\xe0"


class _HtmlText:
    """Hears of a page's elements, from lxml or from our parser of XML."""

    def __init__(self, paragraphs: Paragraphs) -> None:
        self.num_events = 0
        self._paragraphs = paragraphs
        self._silent = 0  # elements around us that have no text
        self._structure = Structure()
        self._is_title = False

    def start(self, tag: str, attributes: Any) -> None:
        self.num_events += 1
        self._structure.enter(tag, attributes)
        self._silent += tag in _NO_TEXT
        if tag in _BLOCKS:
            self._paragraphs.finish(keeps_blank=False)
        elif tag == "br":
            self.data("\n")
        elif tag == "meta":
            name = attributes.get("name") or attributes.get("property") or ""
            _note(self._paragraphs, re.split("[.:]", name)[-1], attributes.get("content") or "")
        elif tag == "title" and not self._silent:
            self._paragraphs.finish(keeps_blank=False)
            self._is_title = True

    def end(self, tag: str) -> None:
        self.num_events += 1
        self._structure.leave()
        self._silent -= tag in _NO_TEXT
        if tag == "title" and self._is_title:
            self._is_title = False
            _note(self._paragraphs, "title", self._paragraphs.take_text())
        elif tag in _BLOCKS:
            self._paragraphs.finish(keeps_blank=False)

    def data(self, text: str) -> None:
        self.num_events += 1
        if not self._silent:
            self._paragraphs.add(text)

    def comment(self, _: str) -> None:
        self.num_events += 1

    def pi(self, *_: str) -> None:
        self.num_events += 1

    def close(self) -> None:
        self._paragraphs.finish(keeps_blank=False)


def read_html(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per paragraph of a page, whatever its tags lack."""
    with extra_needed_for("Reading HTML"):
        from lxml import etree
    paragraphs = Paragraphs(piece.source.name, config.meta)
    text = _HtmlText(paragraphs)
    parser = etree.HTMLParser(target=text, no_network=True)
    encoding = ""
    quiet, heard = 0, 0
    try:
        for encoding, block in _decoded(piece, config):
            parser.feed(block)
            yield from _readable(paragraphs.take(), encoding)
            quiet, heard = (quiet + len(block)) * (heard == text.num_events), text.num_events
            if quiet > LONGEST_LINE:
                raise BrokenStreamError(f"a tag longer than {LONGEST_LINE:,} characters")
        if heard:  # lxml calls a page without any element an error
            parser.close()
        text.close()
        yield from _readable(paragraphs.take(), encoding)
    except NotTextError as error:
        yield Rejected(0, "not-text", "", str(error))
    except (BrokenStreamError, etree.LxmlError, ValueError) as error:
        yield from _readable(paragraphs.take(), encoding)
        yield Rejected(paragraphs.num_finished, "broken-file", "", f"the rest of the file: {error}")


def _decoded(piece: Piece, config: CorpusConfig) -> Iterator[tuple[str, str]]:
    """The page as text, with its encoding: by byte order mark, by what it names, or as stated."""
    decoder = None
    encoding = config.encoding
    for block in read_blocks(piece.source, piece.start, piece.stop):
        if decoder is None:
            encoding, mark = encoding_of(block[:4], "")
            encoding = encoding or _named_encoding(block[:_SNIFFED]) or config.encoding
            if fault := not_text(block[mark:], encoding):
                raise NotTextError(fault)
            decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            yield encoding, decoder.decode(block[mark:])
        else:
            yield encoding, decoder.decode(block)
    if decoder is not None:
        yield encoding, decoder.decode(b"", final=True)


def _named_encoding(head: bytes) -> str | None:
    found = _CHARSET.search(head)
    if found is None:
        return None
    name = codec_of(found.group(1).decode("ascii", errors="replace"))
    # A page whose label can be read is not UTF-16, whatever the label says.
    return "utf-8" if name in ("utf-16-le", "utf-16-be") else name


def _readable(items: Iterator[ReadItem], encoding: str) -> Iterator[ReadItem]:
    """A paragraph with bytes that are no characters is rejected by itself."""
    for item in items:
        if isinstance(item, Record) and "\ufffd" in item.text:
            yield Rejected(item.place, f"not-{encoding}", quote(item.text), "replaced by U+FFFD")
        else:
            yield item


def read_epub(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per paragraph of a book, its chapters in the order in which they are read."""
    paragraphs = Paragraphs(piece.source.name, config.meta)
    try:
        with Archive(piece.source.path) as archive:
            locked = {
                unquote(attributes.get("URI", ""))
                for tag, attributes, _ in _elements(archive, "META-INF/encryption.xml", there=False)
                if tag == "CipherReference"
            }
            for name in _spine(archive, paragraphs):
                page = _HtmlText(paragraphs)
                parser = XmlParser(page.start, page.end, page.data)
                if name in locked:
                    paragraphs.reject("encrypted", f"{name} is encrypted (DRM)")
                    yield from paragraphs.take()
                else:
                    yield from _read_part(archive, name, parser, paragraphs)
    except (ArchiveError, *XML_FAULTS) as error:
        yield Rejected(paragraphs.num_finished, "broken-file", "", f"not readable as EPUB: {error}")
    piece.source.on_read(piece.size)


def _spine(archive: Archive, paragraphs: Paragraphs) -> list[str]:
    """The chapters' names in the archive, in order; what the book says of itself is noted."""
    container = _elements(archive, "META-INF/container.xml")
    package = next((each["full-path"] for tag, each, _ in container if tag == "rootfile"), "")
    items: dict[str, str] = {}
    order: dict[str, None] = {}  # each chapter once, however often it is named
    for tag, attributes, text in _elements(archive, package):
        if tag == "item" and "nav" not in attributes.get("properties", "").split():
            path = unquote(attributes.get("href", "").partition("#")[0])
            full = posixpath.normpath(posixpath.join(posixpath.dirname(package), path))
            items[attributes.get("id", "")] = full
        elif tag == "itemref" and attributes.get("linear") != "no":
            order[attributes.get("idref", "")] = None
        else:
            _note(paragraphs, tag, text)
    return list(dict.fromkeys(items[each] for each in order if each in items))


class _WordText:
    """Hears of the elements of a Word document."""

    _SILENT = frozenset(("Fallback", "del", "moveFrom", "rt"))
    _LETTERS: ClassVar = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}

    def __init__(self, paragraphs: Paragraphs) -> None:
        self._paragraphs = paragraphs
        self._silent = 0
        self._is_text = False
        self.is_in_paragraph = 0

    def start(self, tag: str, _: dict[str, str]) -> None:
        self._silent += tag in self._SILENT
        self._is_text = tag == "t"
        if tag == "p":  # one may lie in another: a text box
            self._paragraphs.finish(keeps_blank=False)
            self.is_in_paragraph += 1
        elif self.is_in_paragraph and not self._silent:
            self._paragraphs.add(self._LETTERS.get(tag, ""))

    def end(self, tag: str) -> None:
        self._silent -= tag in self._SILENT
        self._is_text = False
        if tag == "p":
            self.is_in_paragraph -= 1
            self._paragraphs.finish()

    def data(self, text: str) -> None:
        if self._is_text and not self._silent:
            self._paragraphs.add(text)


def read_docx(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per paragraph of a Word document; footnotes and page headers are other parts."""
    paragraphs = Paragraphs(piece.source.name, config.meta)
    word = _WordText(paragraphs)
    with open_regular(piece.source.path) as stream:
        is_ole = stream.read(len(_OLE)) == _OLE
    if is_ole:
        detail = "a Word document with a password, or an old .doc file; save it as .docx without"
        yield Rejected(0, "encrypted", "", detail)
        return
    try:
        with Archive(piece.source.path) as archive:
            for tag, _, text in _elements(archive, "docProps/core.xml", there=False):
                _note(paragraphs, tag, text)
            parser = XmlParser(word.start, word.end, word.data)
            yield from _read_part(archive, "word/document.xml", parser, paragraphs)
    except (ArchiveError, *XML_FAULTS) as error:
        yield Rejected(paragraphs.num_finished, "broken-file", "", f"not readable as DOCX: {error}")
    piece.source.on_read(piece.size)


def _read_part(
    archive: Archive, name: str, parser: XmlParser, paragraphs: Paragraphs
) -> Iterator[ReadItem]:
    """The paragraphs of one member. A fault costs the rest of it and no other."""
    try:
        for block in archive.pieces(name, limit=LARGEST_PART):
            parser.feed(block)
            yield from paragraphs.take()
        parser.close()
        paragraphs.finish(keeps_blank=False)
    except (ArchiveError, *XML_FAULTS) as error:
        paragraphs.reject("broken-chapter", f"the rest of {name}: {error}")
    yield from paragraphs.take()


def _elements(
    archive: Archive, name: str, *, there: bool = True
) -> list[tuple[str, dict[str, str], str]]:
    """All elements of a small member: name, attributes, and the text that stands right in it.

    Nothing if it is not there, unless it must be.
    """
    found: list[tuple[str, dict[str, str], list[str]]] = []
    opened: list[list[str]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(found) >= MAX_ELEMENTS:
            raise BrokenStreamError(f"{name} has over {MAX_ELEMENTS:,} elements")
        opened.append([])
        named = {local_name(key): value for key, value in attributes.items()}
        found.append((tag, named, opened[-1]))

    def data(text: str) -> None:
        if opened:
            opened[-1].append(text)

    parser = XmlParser(start, lambda _: opened.pop().append(""), data)
    try:
        for block in archive.pieces(name, limit=LARGEST_DESCRIPTION):
            parser.feed(block)
        parser.close()
    except MissingMemberError:
        if there:
            raise
    return [(tag, attributes, "".join(text)) for tag, attributes, text in found]


def _note(paragraphs: Paragraphs, name: str, value: str) -> None:
    """What a file says of itself; the first value counts."""
    name = _ALIASES.get(name.lower(), name.lower())
    value = " ".join(value.split())
    if value and name in paragraphs.columns:
        paragraphs.values.setdefault(name, value)
