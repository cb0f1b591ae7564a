"""HTML, EPUB and DOCX: the text of their paragraphs, headings, list items and table cells.

A file is a document. Left out is what is not running text: scripts, menus, forms, the readings
above ruby characters, tracked deletions, footnotes and page headers of Word. `title`, `author`,
`date` and others named in the `meta` setting come from the file's own description.

Nothing is unpacked or built as a tree. EPUB and DOCX are zip archives (`storage/archives.py`) of
XML, read as TEI is; HTML is read by lxml, as it comes in.
"""

import codecs
import posixpath
import re
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import unquote

from polyseme.errors import MissingExtraError
from polyseme.limits import LONGEST_LINE, open_regular
from polyseme.storage.archives import Archive, ArchiveError, MissingMemberError
from polyseme.text.encodings import codec_of
from polyseme.text.formats.paragraphs import (
    XML_FAULTS,
    Paragraphs,
    Structure,
    XmlParser,
    local_name,
)
from polyseme.text.pieces import Piece
from polyseme.text.records import ReadItem, ReadItems, Record, Rejected, quote
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import encoding_of
from polyseme.text.streams import BrokenStreamError, NotTextError, not_text, read_blocks

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
    etree = _import_lxml()
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


def _import_lxml() -> Any:
    try:
        from lxml import etree
    except ImportError as error:
        raise MissingExtraError.of("lxml", extra="documents", purpose="Reading HTML") from error
    return etree
