"""TEI: paragraphs, verse and headings out of XML that may be broken or hostile."""

from pathlib import Path

import pytest

from polyseme.text import records as limited
from polyseme.text.formats import markup
from polyseme.text.records import Rejected
from text.making import make_config, num_blank, read_all, reasons, records, texts

HEADER = (
    "<teiHeader><fileDesc><titleStmt><title>Emma</title><author>\n<persName>Jane Austen</persName>"
    "</author></titleStmt><sourceDesc><bibl><title>Other</title><date when='1815'>late</date>"
    "</bibl></sourceDesc></fileDesc><p>Not text.</p></teiHeader>"
)


def document(body: str, header: str = HEADER) -> bytes:
    return (
        f'<?xml version="1.0"?><TEI xmlns="http://www.tei-c.org/ns/1.0">{header}'
        f"<text><body>{body}</body></text></TEI>"
    ).encode()


def test_paragraphs_verse_and_headings_are_records(tmp_path: Path) -> None:
    body = "<head>I</head><p>One.</p><lg><l>Two,</l><l>three.</l></lg><ab>Four.</ab>"
    items = read_all(tmp_path, document(body), "tei")
    assert texts(items) == ["I", "One.", "Two,", "three.", "Four."]


def test_the_header_gives_the_metadata_and_no_text(tmp_path: Path) -> None:
    config = make_config(meta=("title", "author", "date", "genre"))
    (record,) = records(read_all(tmp_path, document("<p>x</p>"), "tei", config))
    assert record.meta == ("Emma", "Jane Austen", "1815", None)


def test_each_text_of_a_corpus_has_its_own_header(tmp_path: Path) -> None:
    one = "<TEI><teiHeader><date>{y}</date></teiHeader><text xml:id='t{y}'><p>x</p></text></TEI>"
    data = f"<teiCorpus>{one.format(y=1)}{one.format(y=2)}</teiCorpus>"
    found = records(read_all(tmp_path, data.encode(), "tei", make_config(meta=("date",))))
    assert [(r.document, r.meta) for r in found] == [("input#t1", ("1",)), ("input#t2", ("2",))]


def test_notes_are_left_out(tmp_path: Path) -> None:
    body = "<p>Be<note>a note <p>with a paragraph</p></note>fore.</p><note><p>Alone.</p></note>"
    items = read_all(tmp_path, document(body), "tei")
    assert texts(items) == ["Before."]


def test_line_ends_inside_a_paragraph_are_spaces(tmp_path: Path) -> None:
    assert texts(read_all(tmp_path, document("<p> One\n  two<lb/>three </p>"), "tei")) == [
        "One two three"
    ]


def test_a_break_inside_a_word_is_none(tmp_path: Path) -> None:
    assert texts(read_all(tmp_path, document("<p>won<lb break='no'/>der</p>"), "tei")) == ["wonder"]


def test_sentences_inside_a_paragraph_are_kept_apart(tmp_path: Path) -> None:
    body = "<p><s>One.</s><s>Two in <title>Emma</title>.</s></p>"
    assert texts(read_all(tmp_path, document(body), "tei")) == ["One. Two in Emma."]


def test_an_empty_paragraph_is_blank(tmp_path: Path) -> None:
    assert num_blank(read_all(tmp_path, document("<p/><p> </p><p>x</p>"), "tei")) == 2


def test_broken_xml_keeps_what_came_before(tmp_path: Path) -> None:
    items = read_all(tmp_path, document("<p>One.</p><p>Two.</p><p>Three"), "tei")
    assert texts(items) == ["One.", "Two."]
    assert reasons(items) == ["broken-file"]


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;">',
        '<!ENTITY c SYSTEM "file:///etc/passwd">',
        '<!ENTITY % d SYSTEM "http://localhost/evil.dtd"> %d;',
    ],
)
def test_a_file_that_declares_entities_is_refused(tmp_path: Path, declaration: str) -> None:
    data = f"<!DOCTYPE TEI [{declaration}]><TEI><text><p>&c;</p></text></TEI>".encode()
    (item,) = read_all(tmp_path, data, "tei")
    assert isinstance(item, Rejected)
    assert "entit" in item.detail


def test_letters_written_as_entities_of_a_dtd_are_not_lost(tmp_path: Path) -> None:
    data = b'<!DOCTYPE TEI SYSTEM "tei.dtd"><TEI><text><p>caf&eacute; &odd;</p></text></TEI>'
    assert texts(read_all(tmp_path, data, "tei")) == ["café &odd;"]


@pytest.mark.parametrize("encoding", ["gb18030", "big5", "no-such-encoding"])
def test_an_encoding_the_parser_lacks_is_told(tmp_path: Path, encoding: str) -> None:
    data = f"<?xml version='1.0' encoding='{encoding}'?><TEI><text><p>x</p></text></TEI>"
    assert reasons(read_all(tmp_path, data.encode(), "tei")) == ["broken-file"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_the_encoding_is_the_one_the_file_declares(tmp_path: Path, encoding: str) -> None:
    data = f"<?xml version='1.0' encoding='{encoding}'?><TEI><text><p>déjà</p></text></TEI>"
    assert texts(read_all(tmp_path, data.encode(encoding), "tei")) == ["déjà"]


def test_an_overlong_paragraph_is_rejected_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "LONGEST_LINE", 100)
    body = f"<p>One.</p><p>{'x ' * 100}</p><p>Two.</p>"
    items = read_all(tmp_path, document(body, header=""), "tei")
    assert texts(items) == ["One.", "Two."]
    assert reasons(items) == ["line-too-long"]


def test_nesting_beyond_all_bounds_is_cut_there(tmp_path: Path) -> None:
    items = read_all(tmp_path, document("<p>One.</p>" + "<div>" * 100_000), "tei")
    assert texts(items) == ["One."]
    assert reasons(items) == ["broken-file"]


def test_xml_that_is_not_tei_gives_its_paragraphs(tmp_path: Path) -> None:
    items = read_all(tmp_path, b"<html><body><p>One.</p><div>no</div></body></html>", "tei")
    assert texts(items) == ["One."]


def test_of_elements_in_one_another_the_outer_one_is_the_value(tmp_path: Path) -> None:
    header = "<date>1815 <date>or 1816</date> or so</date>"
    data = f"<TEI><teiHeader>{header}</teiHeader><text><p>x</p></text></TEI>".encode()
    (record,) = records(read_all(tmp_path, data, "tei", make_config(meta=("date",))))
    assert record.meta == ("1815 or 1816 or so",)


@pytest.mark.parametrize(
    ("limit", "middle"),
    [
        ("MAX_NAMES", "".join(f"<a{n}/>" for n in range(20))),
        ("MAX_NAMES", "".join(f'<a b{n}="c"/>' for n in range(20))),
        ("LONGEST_NAME", f"<{'long-name' * 10}/>"),
    ],
)
def test_more_or_longer_names_than_a_parser_should_remember_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, middle: str
) -> None:
    monkeypatch.setattr(markup, limit, 15 if limit == "MAX_NAMES" else 80)
    data = document(f"<p>One.</p>{middle}<p>Two.</p>")
    items = read_all(tmp_path, data, "tei")
    assert (texts(items), reasons(items)) == (["One."], ["broken-file"])


def test_a_tag_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markup, "LONGEST_LINE", 1 << 18)
    data = document('<p>One.</p><p a="' + "x" * (1 << 20) + '">Two.</p>')
    items = read_all(tmp_path, data, "tei")
    assert (texts(items), reasons(items)) == (["One."], ["broken-file"])
