"""Documents as other programs write them, made by hand: PDF, EPUB, DOCX."""

import io
import zipfile
import zlib
from collections.abc import Sequence
from html import escape

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def make_zip(members: dict[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def make_docx(body: str, core: str = "") -> bytes:
    """A Word document with this XML as its body."""
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": f'<?xml version="1.0"?><w:document xmlns:w="{WORD}"><w:body>{body}'
        "</w:body></w:document>",
        "word/footnotes.xml": f'<w:p xmlns:w="{WORD}"><w:r><w:t>A note.</w:t></w:r></w:p>',
    }
    if core:
        members["docProps/core.xml"] = core
    return make_zip(members)


def word_paragraph(*runs: str) -> str:
    return "<w:p>" + "".join(f"<w:r><w:t>{escape(run)}</w:t></w:r>" for run in runs) + "</w:p>"


def make_epub(chapters: dict[str, str], *, metadata: str = "", **more: str) -> bytes:
    """A book with these chapters, by the names they have in it; `more` are other members."""
    items = "".join(f'<item id="i{i}" href="{name}"/>' for i, name in enumerate(chapters))
    # Read in the other order than they are listed in: the spine decides.
    spine = "".join(f'<itemref idref="i{i}"/>' for i in reversed(range(len(chapters))))
    package = (
        '<package xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{metadata}</metadata>"
        f'<manifest><item id="n" href="nav.xhtml" properties="nav"/>{items}</manifest>'
        f'<spine><itemref idref="n"/>{spine}</spine></package>'
    )
    container = (
        '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    )
    return make_zip(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OEBPS/book.opf": package,
            "OEBPS/nav.xhtml": "<html><body><p>Contents</p></body></html>",
            **{f"OEBPS/{name}": text for name, text in chapters.items()},
            **more,
        }
    )


def make_pdf(pages: Sequence[Sequence[str] | bytes], *, info: str = "") -> bytes:
    """A page for each list of lines; bytes are the object of a page's content. The font is made up,
    and tells by a table (ToUnicode) what its glyphs stand for, as PDFs in Chinese do."""
    drawn = [lines for lines in pages if not isinstance(lines, bytes)]
    letters = sorted({letter for lines in drawn for line in lines for letter in line})
    glyphs = {letter: number for number, letter in enumerate(letters, start=1)}
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects += _font(glyphs)
    kids = []
    for lines in pages:
        content = lines if isinstance(lines, bytes) else _stream(_content(lines, glyphs))
        objects.append(content)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    objects.append(f"<< {info} >>".encode("latin-1"))
    return _pdf_file(objects)


def _font(glyphs: dict[str, int]) -> list[bytes]:
    mapped = "\n".join(
        f"<{number:04x}> <{letter.encode('utf-16-be').hex()}>" for letter, number in glyphs.items()
    )
    table = (
        "/CIDInit /ProcSet findresource begin begincmap\n1 begincodespacerange\n<0000> <ffff>\n"
        f"endcodespacerange\n{len(glyphs)} beginbfchar\n{mapped}\nendbfchar\nendcmap end"
    )
    font = "/Type0 /Encoding /Identity-H /DescendantFonts [4 0 R] /ToUnicode 5 0 R"
    shapes = "/CIDFontType2 /DW 500 /CIDSystemInfo << /Ordering (Identity) /Registry (Adobe) >>"
    named = [f"<< /Type /Font /BaseFont /Made /Subtype {each} >>" for each in (font, shapes)]
    return [*(each.encode("ascii") for each in named), _stream(table.encode("ascii"))]


def _content(lines: Sequence[str], glyphs: dict[str, int]) -> bytes:
    drawn = [
        f"1 0 0 1 50 {760 - 14 * i} Tm <{''.join(f'{glyphs[c]:04x}' for c in line)}> Tj"
        for i, line in enumerate(lines)
    ]
    return ("BT /F1 10 Tf " + "\n".join(drawn) + " ET").encode("ascii")


def _stream(data: bytes) -> bytes:
    packed = zlib.compress(data)
    head = b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(packed)
    return head + packed + b"\nendstream"


def _pdf_file(objects: Sequence[bytes]) -> bytes:
    data, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    trailer = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (size, len(objects))
    return (
        data + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer
        + b"startxref\n%d\n%%%%EOF\n" % len(data)
    )  # fmt: skip


def lock_pdf(data: bytes, password: str) -> bytes:
    """The same PDF, to be opened with a password only."""
    import pypdf

    writer = pypdf.PdfWriter(io.BytesIO(data))
    writer.encrypt(password, algorithm="RC4-128")
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()
