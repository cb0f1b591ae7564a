"""HTML, EPUB and DOCX: paragraphs out of pages, books and documents, sound, broken or hostile."""

import io
import zipfile
from pathlib import Path

import pytest

from polyseme.text import encodings
from polyseme.text import records as limited
from polyseme.text.encodings import codec_of
from polyseme.text.formats import markup
from polyseme.text.records import ReadItem, Rejected
from text.documents import make_docx, make_epub, make_zip, word_paragraph
from text.making import make_config, num_blank, read_all, reasons, records, texts

DUBLIN = (
    "<dc:title>Emma</dc:title><dc:creator>Jane Austen</dc:creator><dc:creator>N. N.</dc:creator>"
    "<dc:date>1815</dc:date>"
)
WANTED = make_config(meta=("title", "author", "date", "genre"))


def html(folder: Path, page: str | bytes, **settings: str) -> list[ReadItem]:
    data = page if isinstance(page, bytes) else page.encode()
    return read_all(folder, data, "html", make_config(**settings))


def test_every_block_of_a_page_is_a_record(tmp_path: Path) -> None:
    page = (
        "<html><head><title>T</title></head><body>Loose <b>text</b>.<h1>Head</h1><p>One<p>Two"
        "<ul><li>first<li>second</ul><table><tr><td>a</td><td>b</td></tr></table><div>in<div>"
        "deep</div>out</div></body>"
    )
    expected = ["Loose text.", "Head", "One", "Two", "first", "second", "a", "b", "in", "deep"]
    assert texts(html(tmp_path, page)) == [*expected, "out"]


def test_line_ends_are_spaces_but_not_between_chinese_characters(tmp_path: Path) -> None:
    page = "<p>One\n  two<br>three&nbsp;&eacute;</p><p>中\n文<br/>字</p>"
    assert texts(html(tmp_path, page)) == ["One two three é", "中文字"]


def test_what_is_no_running_text_is_left_out(tmp_path: Path) -> None:
    page = (
        "<style>p {}</style><nav><p>Home</p></nav><p>A<script>b('<p>c</p>')</script>D</p>"
        "<form><p>Search</p></form><p><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby></p>"
        "<svg><title>x</title><text>y</text></svg><!-- <p>z</p> -->"
    )
    assert texts(html(tmp_path, page)) == ["AD", "漢"]


def test_a_page_describes_itself(tmp_path: Path) -> None:
    page = (
        '<title>\n A title </title><meta name="DC.creator" content="Ann"><meta name="author" '
        'content="Other"><meta property="article:published_time" content="2020-01-31"><p>x'
    )
    (record,) = records(read_all(tmp_path, page.encode(), "html", WANTED))
    assert record.meta == ("A title", "Ann", "2020-01-31", None)


@pytest.mark.parametrize(
    ("data", "stated"),
    [
        ('<meta charset="gb2312"><p>镕基</p>'.encode("gb18030"), "utf-8"),
        ('<?xml version="1.0" encoding="big5"?><p>漢字</p>'.encode("big5"), "utf-8"),
        ("\ufeff<p>中文</p>".encode("utf-16-le"), "utf-8"),
        ("<p>中文</p>".encode("gb18030"), "gb18030"),
        ('<meta charset="utf-16"><p>中文</p>'.encode(), "utf-8"),
        ('<meta charset="nonsense"><p>中文</p>'.encode(), "utf-8"),
        ('<meta charset="base64"><p>中文</p>'.encode(), "utf-8"),
        ('<meta charset="punycode"><p>中文</p>'.encode(), "utf-8"),
        ('<?xml version="1.0" encoding="utf-7"?><p>中文</p>'.encode(), "utf-8"),
    ],
)
def test_the_encoding_is_the_marks_the_pages_or_the_stated_one(
    tmp_path: Path, data: bytes, stated: str
) -> None:
    (text,) = texts(html(tmp_path, data, encoding=stated))
    assert text in ("镕基", "漢字", "中文")


def test_a_paragraph_in_another_encoding_is_rejected_by_itself(tmp_path: Path) -> None:
    items = html(tmp_path, b"<p>One</p><p>caf\xe9</p><p>Two</p>")
    assert (texts(items), reasons(items)) == (["One", "Two"], ["not-utf-8"])


def test_records_have_different_places(tmp_path: Path) -> None:
    found = records(html(tmp_path, "<p>a<p>a<p>a"))
    assert len({record.place for record in found}) == 3


def test_an_overlong_paragraph_is_rejected_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "LONGEST_LINE", 100)
    items = html(tmp_path, f"<p>One<p>{'x ' * 100}<p>Two")
    assert (texts(items), reasons(items)) == (["One", "Two"], ["line-too-long"])


def test_a_tag_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markup, "LONGEST_LINE", 1 << 18)
    items = html(tmp_path, '<p>One</p><p a="' + "x" * (1 << 20))
    assert (texts(items), reasons(items)) == (["One"], ["broken-file"])


def test_nesting_beyond_all_bounds_is_cut_there(tmp_path: Path) -> None:
    items = html(tmp_path, "<p>One</p>" + "<div>" * 100_000 + "deep")
    assert (texts(items), reasons(items)) == (["One"], ["broken-file"])


@pytest.mark.parametrize("page", ["", "  \n", "<!-- nothing -->", "<p></p>"])
def test_a_page_without_text_gives_nothing(tmp_path: Path, page: str) -> None:
    assert html(tmp_path, page) == []


def chapter(body: str) -> str:
    return f"<html xmlns='http://www.w3.org/1999/xhtml'><head><title/></head><body>{body}</body></html>"


def test_the_chapters_of_a_book_come_in_the_order_of_reading(tmp_path: Path) -> None:
    book = make_epub({"b%20c.xhtml".replace("%20", "_"): chapter("<p>Two</p>"),
                      "text/a.xhtml": chapter("<h1>I</h1><p>One&nbsp;1<br/>2</p>")})  # fmt: skip
    assert texts(read_all(tmp_path, book, "epub")) == ["I", "One 1 2", "Two"]


def test_a_book_describes_itself(tmp_path: Path) -> None:
    book = make_epub({"a.xhtml": chapter("<p>One</p>")}, metadata=DUBLIN)
    (record,) = records(read_all(tmp_path, book, "epub", WANTED))
    assert record.meta == ("Emma", "Jane Austen", "1815", None)
    assert record.document == "input"


def test_a_broken_chapter_costs_its_rest_and_no_other(tmp_path: Path) -> None:
    book = make_epub({"b.xhtml": chapter("<p>Last</p>"), "a.xhtml": "<html><p>One</p><p>Two</q>"})
    items = read_all(tmp_path, book, "epub")
    assert (texts(items), reasons(items)) == (["One", "Last"], ["broken-chapter"])


def test_a_chapter_that_is_named_and_not_there_is_told(tmp_path: Path) -> None:
    book = make_epub({"a.xhtml": chapter("<p>One</p>")}).replace(b"OEBPS/a.", b"OEBPS/x.")
    assert reasons(read_all(tmp_path, book, "epub")) == ["broken-chapter"]


def test_an_encrypted_chapter_is_named_so(tmp_path: Path) -> None:
    locked = "<encryption><e><CipherReference URI='OEBPS/a.xhtml'/></e></encryption>"
    book = make_epub(
        {"b.xhtml": chapter("<p>Open</p>"), "a.xhtml": "\x01\x02"},
        **{"META-INF/encryption.xml": locked},
    )
    items = read_all(tmp_path, book, "epub")
    assert (texts(items), reasons(items)) == (["Open"], ["encrypted"])


ENTITY = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"META-INF/container.xml": "<container/>"},
        {"META-INF/container.xml": f"{ENTITY}<rootfile full-path='&a;'/>"},
        {"META-INF/container.xml": "<rootfile full-path='../../etc/passwd'/>"},
        {"META-INF/container.xml": "<a>" * 2000},
        {"META-INF/container.xml": "<a>" + "<b/>" * 60_000 + "</a>"},
        {"META-INF/container.xml": "<a>" + " " * (5 << 20) + "</a>"},
    ],
)
def test_a_book_without_sound_contents_is_a_broken_file(
    tmp_path: Path, members: dict[str, str | bytes]
) -> None:
    assert reasons(read_all(tmp_path, make_zip({"a": "b", **members}), "epub")) == ["broken-file"]


def test_a_chapter_that_declares_entities_is_refused(tmp_path: Path) -> None:
    book = make_epub({"a.xhtml": f"{ENTITY}<html><p>&a;</p></html>"})
    (item,) = read_all(tmp_path, book, "epub")
    assert isinstance(item, Rejected)
    assert "entit" in item.detail


def test_a_chapter_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    book = make_epub({"a.xhtml": chapter("<p>One</p>" + " " * (64 << 20))})
    items = read_all(tmp_path, book, "epub")
    assert reasons(items) == ["broken-chapter"]


def test_the_paragraphs_of_a_word_document(tmp_path: Path) -> None:
    body = (
        word_paragraph("One ", "and ", "a half.")
        + "<w:p/>"
        + "<w:p><w:r><w:t>tab</w:t><w:tab/><w:t>line</w:t><w:br/><w:t>end</w:t></w:r></w:p>"
        + f"<w:tbl><w:tr><w:tc>{word_paragraph('cell')}</w:tc></w:tr></w:tbl>"
    )
    items = read_all(tmp_path, make_docx(body), "docx")
    assert (texts(items), num_blank(items)) == (["One and a half.", "tab line end", "cell"], 1)


def test_deletions_readings_and_second_copies_are_left_out(tmp_path: Path) -> None:
    run = "<w:r><w:t>{}</w:t></w:r>"
    body = (
        f"<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>{run.format('Here')}"
        f"<w:moveFrom>{run.format('moved')}</w:moveFrom><w:ruby><w:rt>{run.format('kan')}</w:rt>"
        f"<w:rubyBase>{run.format('漢')}</w:rubyBase></w:ruby><w:instrText>PAGE</w:instrText></w:p>"
        f"<w:Fallback><w:p>{run.format('again')}</w:p></w:Fallback>"
    )
    assert texts(read_all(tmp_path, make_docx(body), "docx")) == ["Here漢"]


def test_a_word_document_describes_itself(tmp_path: Path) -> None:
    core = f"<c xmlns:dc='a' xmlns:dcterms='b'>{DUBLIN.replace('dc:date', 'dcterms:created')}</c>"
    data = make_docx(word_paragraph("x"), core)
    (record,) = records(read_all(tmp_path, data, "docx", WANTED))
    assert record.meta == ("Emma", "Jane Austen", "1815", None)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "broken-file"),
        (b"PK\x03\x04 no zip", "broken-file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "encrypted"),
        (make_zip({"a": "b"}), "broken-chapter"),
        (make_docx("<w:p>")[:-40], "broken-file"),
        (make_docx("<w:p>"), "broken-chapter"),
    ],
)
def test_a_word_document_that_cannot_be_read_is_told(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    assert reasons(read_all(tmp_path, data, "docx")) == [reason]


def test_a_page_may_name_any_encoding_of_the_web_in_any_case(tmp_path: Path) -> None:
    page = '<meta charset="Windows-1251"><p>Да</p>'.encode("cp1251")
    assert texts(html(tmp_path, page)) == ["Да"]
    for label in ("punycode", "idna", "utf-7", "unicode_escape", "rot13"):
        assert codec_of(label) is None
    wanted = {
        "x-sjis": "cp932",
        "GBK": "gb18030",
        "latin1": "cp1252",
        "windows-1252": "cp1252",
        "iso-8859-8-i": "iso8859-8",
        "utf-16": "utf-16-le",
        "euc-kr": "cp949",
        "koi8-r": "koi8-r",
    }
    assert {label: codec_of(label) for label in wanted} == wanted
    for codec in encodings._CODECS:
        assert "a".encode(codec)


def test_a_chapter_outside_the_order_of_reading_is_left_out(tmp_path: Path) -> None:
    page = "<html><body><p>{}</p></body></html>"
    data = make_epub({"b.xhtml": page.format("Two."), "a.xhtml": page.format("One.")})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    package = members["OEBPS/book.opf"]
    members["OEBPS/book.opf"] = package.replace(b'idref="i0"', b'idref="i0" linear="no"')
    assert texts(read_all(tmp_path, make_zip({**members}), "epub")) == ["One."]


def test_an_element_without_text_takes_no_room(tmp_path: Path) -> None:
    pieces = markup.Paragraphs("d", ())
    for _ in range(limited.MAX_PARTS + 1):
        pieces.add("")
    pieces.add("One.")
    pieces.finish()
    assert texts(list(pieces.take())) == ["One."]
