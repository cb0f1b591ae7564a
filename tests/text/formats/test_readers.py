"""What readers make of sound, broken and hostile files of each format: a case a line.

Parquet: a row a document, a damaged part rejected by itself.
"""

import csv
import io
import json
import tempfile
import time
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.errors import InputError
from polyseme.text import records as limited
from polyseme.text import streams
from polyseme.text.formats import marked as marked_text
from polyseme.text.formats import markup, tables
from polyseme.text.formats.lines import LONGEST_PARAGRAPH
from polyseme.text.formats.marked import LONGEST_SENTENCE
from polyseme.text.plan import plan_row_groups
from polyseme.text.records import LONGEST_VALUE, ReadItem, Rejected
from polyseme.text.settings import CorpusConfig, InputFormat
from polyseme.text.sources import Source
from polyseme.text.streams import codec_of
from text.documents import make_docx, make_epub, make_zip, word_paragraph
from text.making import make_config, make_piece, num_blank, read_all, reasons, records, texts

HAN = "中文"
ENTITY = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
WANTED = ("title", "author", "date", "genre")
DUBLIN = (
    "<dc:title>Emma</dc:title><dc:creator>Jane Austen</dc:creator><dc:creator>N. N.</dc:creator>"
    "<dc:date>1815</dc:date>"
)
HEADER = (
    "<teiHeader><fileDesc><titleStmt><title>Emma</title><author>\n<persName>Jane Austen</persName>"
    "</author></titleStmt><sourceDesc><bibl><title>Other</title><date when='1815'>late</date>"
    "</bibl></sourceDesc></fileDesc><p>Not text.</p></teiHeader>"
)
LINES = b"one\ntwo\n\n  \nthree\n"


def word(number: str, form: str = "x", misc: str = "_") -> str:
    """A line of CoNLL-U."""
    return "\t".join([number, form, *["_"] * 7, misc]) + "\n"


def tei(body: str, header: str = HEADER) -> str:
    return (
        f'<?xml version="1.0"?><TEI xmlns="http://www.tei-c.org/ns/1.0">{header}'
        f"<text><body>{body}</body></text></TEI>"
    )


def chapter(body: str) -> str:
    return f"<html xmlns='http://www.w3.org/1999/xhtml'><head><title/></head><body>{body}</body></html>"


def read(folder: Path, kind: InputFormat, data: str | bytes, **values: Any) -> list[Any]:
    data = data.encode() if isinstance(data, str) else data
    return read_all(folder, data, kind, make_config(**values))


def case(kind: str, name: str, data: str | bytes, *expected: str, **more: Any) -> Any:
    """What comes out: texts, then what is rejected, how much is blank, under which settings."""
    rejected, blank = more.pop("rejected", ()), more.pop("blank", 0)
    rejected = [rejected] if isinstance(rejected, str) else [*rejected]
    return pytest.param(kind, data, [*expected], rejected, blank, more, id=f"{kind}: {name}")


GOOD = word("1") + "\n"
PLAIN = [
    case("text", "articles", LINES, "one", "two", "three", blank=2),
    *(
        case("text", layout, LINES, "one", "two", "three", blank=2, layout=layout)
        for layout in ("auto", "unwrapped", "lines")
    ),
    case("text", "wrapped", LINES, "one two", "three", blank=2, layout="wrapped"),
    case("text", "a bad line parts paragraphs", b"a\n\xff\nb\n", "a", "b",
         rejected="not-utf-8", layout="wrapped"),
    case("text", "Chinese lines are joined without a space", "天下\n雨。\n他说 ok\nyes\n",
         "天下雨。他说 ok yes", layout="wrapped"),
    case("text", "Windows line ends", b"one\r\ntwo\r\n", "one", "two"),
    *(
        case("text", f"a mark tells {code}", f"\ufeffeins\n{HAN}\r\n\nਊ😀".encode(code),
             "eins", HAN, "ਊ😀", blank=1)
        for code in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
    ),
    *(
        case("text", f"in {code}", f"{text}\n".encode(code), text, encoding=code)
        for code, text in (("gb18030", HAN), ("big5", HAN), ("shift_jis", HAN), ("cp1252", "déjà"))
    ),
    case("text", "a line in another encoding", b"good\n" + HAN.encode("gb18030") + b"\ngood\n",
         "good", "good", rejected="not-utf-8"),
    case("text", "an empty file", b""),
]  # fmt: skip
CONLLU = [
    case("conllu", "the last sentence needs no blank line", word("1", "Yes"), "Yes"),
    case("conllu", "an empty node is no word",
         word("1", "Sue") + word("1.1", "likes") + word("2", "tea"), "Sue tea"),
    case("conllu", "comments alone", "# only = this\n\n", blank=1),
    *(
        case("conllu", f"a bad line: {bad[:12]!r}", GOOD + word("1", "a") + bad + "\n" + GOOD,
             "x", "x", rejected="not-conllu")
        for bad in ("1\tnine\t_\t_\t_\t_\t_\t_\t_\n", "no columns\n", word("y"), word("²"),
                    word("1-2-3"), word(""), word("9" * 5000), word("1", ""))
    ),
    *(
        case("conllu", f"contractions that overlap: {ranges}",
             "".join(map(word, ranges)) + word("1", "a") + word("2", "b") + "\n" + word("1"),
             "x", rejected="not-conllu")
        for ranges in (("1-2", "2-3"), ("1-3", "2-2"), ("1-2", "1-2"), ("2-1",))
    ),
    case("conllu", "a line that cannot be decoded",
         f"{GOOD}{word('1')}".encode() + b"\xff\n" + f"{word('3')}\n{GOOD}".encode(),
         "x", "x", rejected="not-utf-8"),
    case("conllu", "too many words", word("1", "w") * (LONGEST_SENTENCE + 1) + "\n" + word("1"),
         "x", rejected="sentence-too-long"),
    *(
        case("conllu", f"too long a {key}", f"# {key} = {'x' * (LONGEST_VALUE + 1)}\n{word('1')}",
             rejected="metadata-too-long", meta=("date",))
        for key in ("newdoc id", "date")
    ),
]  # fmt: skip
VERTICAL = [
    case("vertical", "glue does not reach over a sentence end",
         "<s>\na\n<g/>\n</s>\n<s>\nb\nc\n</s>\n", "a", "b c"),
    case("vertical", "entities", "<s>\n&lt;\n&amp;\n</s>\n", "< &"),
    case("vertical", "what only looks like a tag is a word", "<s>\n<\n<3\n<s\na<b>\n</s>\n",
         "< <3 <s a<b>"),
    case("vertical", "other tags part nothing", "<s>\na\n<hi>\nb\n</hi>\nc\n</s>\n", "a b c"),
    case("vertical", "without closing tags", "<text>\n<s>\na\n<s>\nb\n<text>\n<s>\nc\n",
         "a", "b", "c"),
    case("vertical", "a line that cannot be decoded", b"<s>\na\n\xff\nb\n</s>\n", "a b",
         rejected="not-utf-8"),
]  # fmt: skip
JSONL = [
    *(
        case("jsonl", line[:20], f'{{"text": "before"}}\n{line}\n{{"text": "after"}}\n',
             "before", "after", rejected=reason)
        for reason, lines in {
            "not-json": ("{", '{"text": "half', "plain text", '{"text": "x"} {"text": "y"}',
                         '{"text": ' + "9" * 5000 + "}", "[" * 100_000,
                         '{"text": ' + "[" * 100_000),
            "not-a-json-object": ('["text"]', "3", "NaN", "null"),
            "no-text": ("{}", '{"text": null}'),
            "text-not-a-string": ('{"text": 3}', '{"text": NaN}', '{"text": ["x"]}'),
        }.items()
        for line in lines
    ),
    case("jsonl", "empty texts", '{"text": " \\n"}\n\n', blank=2),
    *(
        case("jsonl", f"no id: {row}", row, rejected="no-id", id_column="id")
        for row in ('{"text": "x"}', '{"text": "x", "id": null}', '{"text": "x", "id": ""}')
    ),
]  # fmt: skip
TABLES = [
    case("csv", "quoted line ends, commas and quotes",
         b'text,n\r\n"one\r\ntwo, ""three""",1\r\nfour,2\r\n', 'one\ntwo, "three"', "four"),
    case("csv", "a quote closed by that of a later row",
         'id,text\n1,"one\n2,two\n3,"three, four"\n4,five\n', "two", "three, four", "five",
         rejected="broken-row"),
    case("csv", "two columns of a name nobody asked for", "n,text,n\n1,one,2\n", "one"),
    case("csv", "a wrongly quoted row", 'text\none\n"two" x\nthree\n', "one", "three",
         rejected="broken-row"),
    *(
        case("csv", f"a row of other length: {row}", f"id,text\n1,one\n{row}\n2,two\n",
             "one", "two", rejected="wrong-number-of-fields")
        for row in ("a,b,c", "a", '"a,b"')
    ),
    case("csv", "a badly encoded line", b"text\none\n\xff\ntwo\n", "one", "two",
         rejected="not-utf-8"),
    case("csv", "blank lines and fields", "text,n\n\n ,1\none,2\n", "one", blank=2),
    case("csv", "an empty file", ""),
    case("csv", "a bare header", "text\n"),
    case("tsv", "quotes mean nothing", 'text\tn\n"one\t1\n5" disk\t2\n', '"one', '5" disk'),
]  # fmt: skip
HTML = [
    case("html", "every block is a record",
         "<html><head><title>T</title></head><body>Loose <b>text</b>.<h1>Head</h1><p>One<p>Two"
         "<ul><li>first<li>second</ul><table><tr><td>a</td><td>b</td></tr></table><div>in<div>"
         "deep</div>out</div></body>",
         "Loose text.", "Head", "One", "Two", "first", "second", "a", "b", "in", "deep", "out"),
    case("html", "line ends", "<p>One\n  two<br>three&nbsp;&eacute;</p><p>中\n文<br/>字</p>",
         "One two three é", "中文字"),
    case("html", "what is no running text",
         "<style>p {}</style><nav><p>Home</p></nav><p>A<script>b('<p>c</p>')</script>D</p>"
         "<form><p>Search</p></form><p><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby></p>"
         "<svg><title>x</title><text>y</text></svg><!-- <p>z</p> -->", "AD", "漢"),
    case("html", "a declared superset", '<meta charset="gb2312"><p>镕基</p>'.encode("gb18030"),
         "镕基"),
    case("html", "declared in XML",
         '<?xml version="1.0" encoding="big5"?><p>漢字</p>'.encode("big5"), "漢字"),
    case("html", "a byte-order mark", f"\ufeff<p>{HAN}</p>".encode("utf-16-le"), HAN),
    case("html", "stated", f"<p>{HAN}</p>".encode("gb18030"), HAN, encoding="gb18030"),
    *(
        case("html", f"as {code} it cannot be", f'<meta charset="{code}"><p>{HAN}</p>', HAN)
        for code in ("utf-16", "nonsense", "base64", "punycode", "utf-7")
    ),
    case("html", "any case", '<meta charset="Windows-1251"><p>Да</p>'.encode("cp1251"), "Да"),
    case("html", "a paragraph in another encoding", b"<p>One</p><p>caf\xe9</p><p>Two</p>",
         "One", "Two", rejected="not-utf-8"),
    case("html", "nesting beyond all bounds", "<p>One</p>" + "<div>" * 100_000 + "deep", "One",
         rejected="broken-file"),
    *(case("html", f"nothing: {page}", page) for page in ("", "  \n", "<!-- no -->", "<p></p>")),
]  # fmt: skip
TEI = [
    case("tei", "paragraphs, verse and headings",
         tei("<head>I</head><p>One.</p><lg><l>Two,</l><l>three.</l></lg><ab>Four.</ab>"),
         "I", "One.", "Two,", "three.", "Four."),
    case("tei", "notes are left out", tei("<p>Be<note>a note <p>with a paragraph</p></note>fore."
         "</p><note><p>Alone.</p></note>"), "Before.", blank=1),
    case("tei", "line ends are spaces", tei("<p> One\n  two<lb/>three </p>"), "One two three"),
    case("tei", "a break inside a word", tei("<p>won<lb break='no'/>der</p>"), "wonder"),
    case("tei", "sentences are kept apart",
         tei("<p><s>One.</s><s>Two in <title>Emma</title>.</s></p>"), "One. Two in Emma."),
    case("tei", "empty paragraphs", tei("<p/><p> </p><p>x</p>"), "x", blank=2),
    case("tei", "broken XML", tei("<p>One.</p><p>Two.</p><p>Three"), "One.", "Two.",
         rejected="broken-file"),
    case("tei", "entities of a DTD",
         '<!DOCTYPE TEI SYSTEM "tei.dtd"><TEI><text><p>caf&eacute; &odd;</p></text></TEI>',
         "café &odd;"),
    *(
        case("tei", f"the parser has no {code}",
             f"<?xml version='1.0' encoding='{code}'?><TEI><text><p>x</p></text></TEI>",
             rejected="broken-file")
        for code in ("gb18030", "big5", "no-such-encoding")
    ),
    *(
        case("tei", f"declared {code}", f"<?xml version='1.0' encoding='{code}'?><TEI><text>"
             "<p>déjà</p></text></TEI>".encode(code), "déjà")
        for code in ("utf-8", "utf-16", "iso-8859-1")
    ),
    case("tei", "nesting beyond all bounds", tei("<p>One.</p>" + "<div>" * 100_000), "One.",
         rejected="broken-file"),
    case("tei", "XML that is not TEI", "<html><body><p>One.</p><div>no</div></body></html>",
         "One."),
]  # fmt: skip
BOOKS = [
    case("epub", "in the order of reading",
         make_epub({"b_c.xhtml": chapter("<p>Two</p>"),
                    "text/a.xhtml": chapter("<h1>I</h1><p>One&nbsp;1<br/>2</p>")}),
         "I", "One 1 2", "Two"),
    case("epub", "a broken chapter costs its rest",
         make_epub({"b.xhtml": chapter("<p>Last</p>"), "a.xhtml": "<html><p>One</p><p>Two</q>"}),
         "One", "Last", rejected="broken-chapter"),
    case("epub", "a chapter that is not there",
         make_epub({"a.xhtml": chapter("<p>One</p>")}).replace(b"OEBPS/a.", b"OEBPS/x."),
         rejected="broken-chapter"),
    case("epub", "an encrypted chapter",
         make_epub({"b.xhtml": chapter("<p>Open</p>"), "a.xhtml": "\x01\x02"},
                   **{"META-INF/encryption.xml": "<encryption><e><CipherReference "
                      "URI='OEBPS/a.xhtml'/></e></encryption>"}),
         "Open", rejected="encrypted"),
    *(
        case("epub", f"no sound contents: {container[:20]}",
             make_zip({"a": "b", **({"META-INF/container.xml": container} if container else {})}),
             rejected="broken-file")
        for container in ("", "<container/>", f"{ENTITY}<rootfile full-path='&a;'/>",
                          "<rootfile full-path='../../etc/passwd'/>", "<a>" * 2000,
                          "<a>" + "<b/>" * 60_000 + "</a>", "<a>" + " " * (5 << 20) + "</a>")
    ),
    case("epub", "a chapter that unpacks without end",
         make_epub({"a.xhtml": chapter("<p>One</p>" + " " * (64 << 20))}),
         "One", rejected="broken-chapter"),
    case("docx", "paragraphs and cells",
         make_docx(word_paragraph("One ", "and ", "a half.") + "<w:p/><w:p><w:r><w:t>tab</w:t>"
                   "<w:tab/><w:t>line</w:t><w:br/><w:t>end</w:t></w:r></w:p>"
                   f"<w:tbl><w:tr><w:tc>{word_paragraph('cell')}</w:tc></w:tr></w:tbl>"),
         "One and a half.", "tab line end", "cell", blank=1),
    case("docx", "deletions, readings and second copies",
         make_docx("<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>Here</w:t>"
                   "</w:r><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:ruby><w:rt><w:r>"
                   "<w:t>kan</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase>"
                   "</w:ruby><w:instrText>PAGE</w:instrText></w:p><w:Fallback><w:p><w:r>"
                   "<w:t>again</w:t></w:r></w:p></w:Fallback>"), "Here漢", blank=1),
    *(
        case("docx", f"{reason}: {data[:6]!r}", data, rejected=reason)
        for data, reason in ((b"", "broken-file"), (b"PK\x03\x04 no zip", "broken-file"),
                             (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "encrypted"),
                             (make_zip({"a": "b"}), "broken-chapter"),
                             (make_docx("<w:p>")[:-40], "broken-file"),
                             (make_docx("<w:p>"), "broken-chapter"))
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data", "expected", "rejected", "blank", "values"),
    [*PLAIN, *CONLLU, *VERTICAL, *JSONL, *TABLES, *HTML, *TEI, *BOOKS],
)
def test_texts_come_out_and_what_is_none_is_rejected_by_itself(
    tmp_path: Path,
    kind: InputFormat,
    data: str | bytes,
    expected: list[str],
    rejected: list[str],
    blank: int,
    values: dict[str, Any],
) -> None:
    items = read(tmp_path, kind, data, **values)
    assert (texts(items), reasons(items), num_blank(items)) == (expected, rejected, blank)


def of(kind: str, fields: str, data: str | bytes, *expected: Any, **values: Any) -> Any:
    return pytest.param(kind, fields.split(), data, [*expected], values, id=f"{kind}: {fields}")


ONE_TEI = "<TEI><teiHeader><date>{y}</date></teiHeader><text xml:id='t{y}'><p>x</p></text></TEI>"
TAGGED = (
    "1\tDogs\tdog\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n" + word("2-3", "dont")
    + "2\tdo\tdo\tAUX\t_\t_\t0\troot\t_\t_\n3\tnt\tnot\tPART\t_\t_\t2\tadvmod\t_\t_\n"
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fields", "data", "expected", "values"),
    [
        of("text", "document", LINES, ("input@0",), ("input@0",), ("input@12",)),
        of("text", "document", LINES, ("input@0",), ("input@4",), ("input@12",), layout="lines"),
        of("text", "document", LINES, *[("input",)] * 3, layout="auto"),
        of("text", "document units", LINES, ("input", 2), ("input", 1), layout="wrapped"),
        of("text", "document", b"a\n\xff\nb\n", *[("input@0",)] * 2),
        of("text", "text document", b"\xef\xbb\xbfone\n", ("one", "input@3")),
        of("text", "meta", "a\n", ((None, None),), meta=("x", "y")),
        of("conllu", "words starts", word("1", "Dogs") + word("2", "bark") + "\n" + word("1"),
           (("Dogs", "bark"), (0, 5)), (("x",), (0,))),
        of("conllu", "text starts",
           word("1", "Yes", "Gloss=x|SpaceAfter=No") + word("2", ".") + word("3", "So"),
           ("Yes. So", (0, 3, 5))),
        of("conllu", "words text", word("1", "Vamos") + word("2-3", "al", "SpaceAfter=No")
           + word("2", "a") + word("3", "el") + word("4", "!"),
           (("Vamos", "al", "!"), "Vamos al!")),
        of("conllu", "document", f"# newdoc id = a\n{GOOD}{GOOD}# newdoc\n{GOOD}", ("input#a",),
           ("input#a",), (f"input#{16 + 2 * len(GOOD)}",)),
        of("conllu", "document", GOOD * 2, ("input@0",), ("input@0",)),
        of("conllu", "meta", f"# newdoc\n# date = 1850\n{GOOD}{GOOD}# newdoc\n{GOOD}",
           (("1850",),), (("1850",),), ((None,),), meta=("date",)),
        # A contraction has no attributes of its own.
        of("conllu", "words attributes", TAGGED,
           (("Dogs", "dont"), (("NOUN", None), ("dog", None), ("Number=Plur", None))),
           word_attributes=("upos", "lemma", "feats")),
        of("vertical", "words", "<s>\nDogs\tNNS\tdog\nbark\tVVP\tbark\n</s>\n<s>\nYes\n</s>\n",
           (("Dogs", "bark"),), (("Yes",),)),
        of("vertical", "text starts", "<s>\nYes\n<g/>\n,\nshe\n<g />\n.\n</s>\n",
           ("Yes, she.", (0, 3, 5, 8))),
        *(
            of("vertical", "document meta",
               f'<{tag} id="t1" date="1850" title="A &amp; B > C">\n<s>\nx\n</s>\n</{tag}>\n',
               ("input#t1", ("1850", "A & B > C", None)), meta=("date", "title", "none"))
            for tag in ("text", "doc")
        ),
        of("vertical", "document meta", '<text date="1850">\nx\n</text>\n<text>\ny\n</text>\n',
           ("input#0", ("1850",)), ("input#29", (None,)), meta=("date",)),
        of("vertical", "words attributes", "<s>\nDogs\tNNS\tdog\tx\nR&amp;D\tNN\tr&amp;d&#9;e\nbark"
           "\n\tNN\tno word\nYes\t_\tyes\n</s>\n",
           (("Dogs", "R&D", "bark", "Yes"),
            (("NNS", "NN", None, None), ("dog", "r&d e", None, "yes"))),
           word_attributes=("tag", "lemma")),
        of("jsonl", "document text", '{"text": "one"}\n{"text": "two\\nlines"}\n',
           ("input@0", "one"), ("input@16", "two\nlines")),
        of("jsonl", "document text meta",
           json.dumps({"body": "x", "nr": 7, "date": 1850, "tags": ["a"], "none": None}),
           ("7", "x", ("1850", "['a']", None, None)), text_column="body", id_column="nr",
           meta=("date", "tags", "none", "no")),
        of("csv", "document text", "id,text\n1,one\n2,two\n", ("input#1", "one"),
           ("input#2", "two")),
        of("csv", "document text meta", "date,nr,body\n1850,x7,one\n", ("x7", "one", ("1850",)),
           text_column="body", id_column="nr", meta=("date",)),
        of("csv", "meta", "text, year , author\nx,1,Y\n", (("1", "Y"),), meta=("year", " author")),
        of("html", "meta", '<title>\n A title </title><meta name="DC.creator" content="Ann"><meta '
           'name="author" content="Other"><meta property="article:published_time" '
           'content="2020-01-31"><p>x', (("A title", "Ann", "2020-01-31", None),), meta=WANTED),
        of("html", "place", "<p>a<p>a", (0,), (1,)),
        of("epub", "document meta", make_epub({"a.xhtml": chapter("<p>x</p>")}, metadata=DUBLIN),
           ("input", ("Emma", "Jane Austen", "1815", None)), meta=WANTED),
        of("docx", "meta", make_docx(word_paragraph("x"), "<c xmlns:dc='a' xmlns:dcterms='b'>"
           f"{DUBLIN.replace('dc:date', 'dcterms:created')}</c>"),
           (("Emma", "Jane Austen", "1815", None),), meta=WANTED),
        of("tei", "meta", tei("<p>x</p>"), (("Emma", "Jane Austen", "1815", None),), meta=WANTED),
        of("tei", "document meta",
           f"<teiCorpus>{ONE_TEI.format(y=1)}{ONE_TEI.format(y=2)}</teiCorpus>",
           ("input#t1", ("1",)), ("input#t2", ("2",)), meta=("date",)),
        of("tei", "meta", "<TEI><teiHeader><date>1815 <date>or 1816</date> or so</date></teiHeader>"
           "<text><p>x</p></text></TEI>", (("1815 or 1816 or so",),), meta=("date",)),
    ],
)  # fmt: skip
def test_records_have_their_documents_metadata_words_and_attributes(
    tmp_path: Path,
    kind: InputFormat,
    fields: list[str],
    data: str | bytes,
    expected: list[Any],
    values: dict[str, Any],
) -> None:
    found = records(read(tmp_path, kind, data, **values))
    assert [tuple(getattr(record, name) for name in fields) for record in found] == expected


@pytest.mark.parametrize(
    ("kind", "limit", "data", "expected", "rejected"),
    [
        ("text", (streams, "LONGEST_LINE", 100), f"good\n{'x' * 101}\ngood\n", ["good", "good"],
         ["line-too-long"]),
        ("html", (limited, "LONGEST_LINE", 100), f"<p>One<p>{'x ' * 100}<p>Two", ["One", "Two"],
         ["line-too-long"]),
        ("tei", (limited, "LONGEST_LINE", 100),
         tei(f"<p>One.</p><p>{'x ' * 100}</p><p>Two.</p>", ""), ["One.", "Two."],
         ["line-too-long"]),
        ("html", (markup, "LONGEST_LINE", 1 << 18), '<p>One</p><p a="' + "x" * (1 << 20), ["One"],
         ["broken-file"]),
        ("tei", (markup, "LONGEST_LINE", 1 << 18),
         tei('<p>One.</p><p a="' + "x" * (1 << 20) + '">Two.</p>'), ["One."], ["broken-file"]),
        *(
            ("tei", (markup, name, most), tei(f"<p>One.</p>{middle}<p>Two.</p>"), ["One."],
             ["broken-file"])
            for name, most, middle in (
                ("MAX_NAMES", 15, "".join(f"<a{n}/>" for n in range(20))),
                ("MAX_NAMES", 15, "".join(f'<a b{n}="c"/>' for n in range(20))),
                ("LONGEST_NAME", 80, f"<{'long-name' * 10}/>"),
            )
        ),
        ("conllu", (limited, "LONGEST_LINE", 100), word("1", "w" * 40) * 3 + "\n" + word("1"),
         ["x"], ["sentence-too-long"]),
        ("vertical", (limited, "LONGEST_LINE", 100),
         "<s>\n" + "0123456789\n" * 50 + "</s>\n<s>\nb\n</s>\n", ["b"], ["sentence-too-long"]),
        ("vertical", (marked_text, "LONGEST_SENTENCE", 2), "w\n" * 5, ["w w", "w w", "w"], []),
    ],
)  # fmt: skip
def test_what_is_too_long_costs_only_itself(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: InputFormat,
    limit: tuple[Any, str, int],
    data: str,
    expected: list[str],
    rejected: list[str],
) -> None:
    monkeypatch.setattr(*limit)
    items = read(tmp_path, kind, data)
    assert (texts(items), reasons(items)) == (expected, rejected)


def test_an_endless_paragraph_is_cut_in_bounded_pieces(tmp_path: Path) -> None:
    items = read(tmp_path, "text", b"\n".join([b"x" * 1000] * 3000), layout="wrapped")
    assert sum(record.units for record in records(items)) == 3000
    assert max(map(len, texts(items))) <= 1.1 * LONGEST_PARAGRAPH


@pytest.mark.parametrize(
    ("kind", "data", "quote", "place"),
    [("conllu", word("1", "a") + "no columns\n", "no columns", len(word("1", "a"))),
     ("jsonl", '{"other": "\\ud800"}', "{'other': '\\ud800'}", 0)],
)  # fmt: skip
def test_what_is_rejected_is_quoted_with_its_place(
    tmp_path: Path, kind: InputFormat, data: str, quote: str, place: int
) -> None:
    (item,) = read(tmp_path, kind, data)
    assert isinstance(item, Rejected)
    assert (item.quote, item.place) == (quote, place)


def test_attributes_count_towards_the_length_of_a_sentence_if_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "LONGEST_LINE", 100)
    data = word("1").replace("x\t_", "x\t" + "l" * 40) * 3 + "\n" + word("1")
    assert texts(read(tmp_path, "conllu", data)) == ["x x x", "x"]
    assert texts(read(tmp_path, "conllu", data, word_attributes=("lemma",))) == ["x"]


@pytest.mark.parametrize("depth", [100, 300, 500, 700, 900, 950])
@pytest.mark.parametrize("column", ["text", "date", "other"])
def test_nesting_just_short_of_too_deep_crashes_nothing(
    tmp_path: Path, depth: int, column: str
) -> None:
    data = f'{{"{column}": {"[" * depth + "]" * depth}}}\n{{"text": "after"}}\n'
    items = read(tmp_path, "jsonl", data, meta=("date",))
    assert (texts(items), len(reasons(items))) == (["after"], 1)


def test_an_unclosed_quote_costs_its_own_line_only(tmp_path: Path) -> None:
    rows = [b"%d,row %d" % (n, n) for n in range(1000)]
    rows[9] = b'9,"row 9'
    items = read(tmp_path, "csv", b"id,text\n" + b"\n".join(rows))
    assert texts(items) == [f"row {n}" for n in range(1000) if n != 9]
    (bad,) = [item for item in items if isinstance(item, Rejected)]
    assert (bad.reason, bad.units, bad.quote) == ("broken-row", 1, '9,"row 9')
    assert "line 11, read on to line 1001" in bad.detail
    inside = read(tmp_path, "csv", b'text\n"two\n\xff\nthree\n')
    assert sorted(reasons(inside)) == ["broken-row", "not-utf-8"]


def test_a_field_beyond_all_bounds_and_a_lone_carriage_return_cost_only_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = read(tmp_path, "csv", b"text,n\none,1\ntw\ro,2\nthree,3\n")
    assert (texts(items)[0], texts(items)[-1], reasons(items)) == ("one", "three", ["broken-row"])
    monkeypatch.setattr(tables, "LONGEST_LINE", 100)
    items = read(tmp_path, "csv", 'text\n"' + "x\n" * 60 + "good\n" * 3)
    assert "broken-row" in reasons(items)
    assert texts(items)[-1] == "good"


@pytest.mark.parametrize("line", [b'"a', b'a,"', b'"""a', b'""a', b'5" a', b'"a\n""', b'"a",""b'])
def test_lines_of_stray_quotes_take_time_in_proportion(tmp_path: Path, line: bytes) -> None:
    def seconds(number: int) -> float:
        began = time.process_time()
        assert len(read(tmp_path, "csv", b"text\n" + (line + b"\n") * number)) >= number / 2
        return time.process_time() - began

    # The best of three: garbage of other tests may be collected in one of them.
    few, many = (min(seconds(number) for _ in range(3)) for number in (2_000, 8_000))
    assert many < 10 * few + 0.1, (few, many)


@pytest.mark.parametrize(
    ("header", "values", "message"),
    [
        ("text,id,text\n", {}, r"2 columns named 'text' \(columns 1, 3\)"),
        ("id;body\n", {}, r"input has no column 'text'.*id;body.*--text-column"),
        ("text\nx\n", {"meta": ("date",)}, "no column 'date'"),
        ("text\nx\n", {"id_column": "date"}, "no column 'date'"),
    ],
)
def test_a_column_that_is_not_there_or_twice_is_an_error(
    tmp_path: Path, header: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, "csv", header, **values)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(alphabet='ab ,"\né中', min_size=1).filter(str.strip), max_size=10))
def test_what_pythons_writer_wrote_is_read_back(values: list[str]) -> None:
    out = io.StringIO(newline="")
    csv.writer(out).writerows([["n", "text"], *enumerate(values)])
    with tempfile.TemporaryDirectory() as folder:
        assert texts(read(Path(folder), "csv", out.getvalue())) == values


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("epub", make_epub({"a.xhtml": f"{ENTITY}<html><p>&a;</p></html>"})),
        *(
            ("tei", f"<!DOCTYPE TEI [{declared}]><TEI><text><p>&c;</p></text></TEI>")
            for declared in (
                '<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">',
                '<!ENTITY c SYSTEM "file:///etc/passwd">',
                '<!ENTITY % d SYSTEM "http://localhost/evil.dtd"> %d;',
            )
        ),
    ],
)
def test_what_declares_entities_is_refused(
    tmp_path: Path, kind: InputFormat, data: str | bytes
) -> None:
    (item,) = read(tmp_path, kind, data)
    assert isinstance(item, Rejected)
    assert "entit" in item.detail


def test_encodings_are_known_by_the_names_of_the_web() -> None:
    for label in ("punycode", "idna", "utf-7", "unicode_escape", "rot13"):
        assert codec_of(label) is None
    wanted = {"x-sjis": "cp932", "GBK": "gb18030", "latin1": "cp1252", "windows-1252": "cp1252",
              "iso-8859-8-i": "iso8859-8", "utf-16": "utf-16-le", "euc-kr": "cp949",
              "koi8-r": "koi8-r"}  # fmt: skip
    assert {label: codec_of(label) for label in wanted} == wanted
    assert all("a".encode(codec) for codec in streams._CODECS)


def test_a_chapter_outside_the_order_of_reading_is_left_out(tmp_path: Path) -> None:
    page = "<html><body><p>{}</p></body></html>"
    data = make_epub({"b.xhtml": page.format("Two."), "a.xhtml": page.format("One.")})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    package = members["OEBPS/book.opf"]
    members["OEBPS/book.opf"] = package.replace(b'idref="i0"', b'idref="i0" linear="no"')
    assert texts(read(tmp_path, "epub", make_zip({**members}))) == ["One."]


def test_an_element_without_text_takes_no_room() -> None:
    pieces = markup.Paragraphs("d", ())
    for _ in range(limited.MAX_PARTS + 1):
        pieces.add("")
    pieces.add("One.")
    pieces.finish()
    assert texts(list(pieces.take())) == ["One."]


def write(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "input", **options)
    return folder / "input"


def read_of_parquet(path: Path, config: CorpusConfig | None = None) -> list[ReadItem]:
    source = Source(path, "input", "parquet", None, path.stat().st_size)
    return list(tables.read(make_piece(source), config or make_config()))


@pytest.mark.parametrize(
    ("column", "expected", "rejected", "blank"),
    [
        (["one", "two", "three"], ["one", "two", "three"], [], 0),
        (["one", None, " ", ""], ["one"], ["no-text"], 2),
        ([1, 2], [], ["text-not-a-string"] * 2, 0),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"], [], 0),
        (pa.array([], pa.string()), [], [], 0),
    ],
)
def test_each_row_is_a_document_named_by_its_number(
    tmp_path: Path, column: Any, expected: list[str], rejected: list[str], blank: int
) -> None:
    items = read_of_parquet(write(tmp_path, {"text": column}, row_group_size=2))
    assert (texts(items), reasons(items), num_blank(items)) == (expected, rejected, blank)
    assert [r.document for r in records(items)] == [f"input#{n}" for n in range(len(expected))]


def test_ids_and_metadata_come_from_their_columns(tmp_path: Path) -> None:
    when = datetime(1850, 5, 1)  # noqa: DTZ001  # as most tables have it
    path = write(tmp_path, {"body": ["x"], "nr": [7], "date": [when], "other": [1]})
    config = make_config(text_column="body", id_column="nr", meta=("date",))
    (record,) = records(read_of_parquet(path, config))
    assert (record.document, record.meta) == ("7", ("1850-05-01 00:00:00",))


def test_text_that_is_not_utf_8_costs_one_row(tmp_path: Path) -> None:
    raw = [b"good"] * 2000
    raw[1500] = b"bad \xff"
    column = pa.array(raw, pa.binary()).cast(pa.string(), safe=False)
    items = read_of_parquet(write(tmp_path, {"text": column}))
    assert len(texts(items)) == 1999
    assert reasons(items) == ["unreadable-row"]


def test_a_time_python_cannot_hold_costs_one_row(tmp_path: Path) -> None:
    times = pa.array([0, 2**62], pa.timestamp("us"))
    items = read_of_parquet(
        write(tmp_path, {"text": ["a", "b"], "date": times}), make_config(meta=("date",))
    )
    assert texts(items) == ["a"]
    assert reasons(items) == ["unreadable-row"]


def test_a_damaged_row_group_is_rejected_by_itself(tmp_path: Path) -> None:
    values = [f"row {i}" for i in range(30)]
    path = write(tmp_path, {"text": values}, row_group_size=10, use_dictionary=False)
    second = pq.read_metadata(path).row_group(1).column(0)
    data = bytearray(path.read_bytes())
    begin = second.data_page_offset
    data[begin : begin + second.total_compressed_size] = b"\xff" * second.total_compressed_size
    path.write_bytes(data)
    items = read_of_parquet(path)
    assert texts(items) == values[:10] + values[20:]
    (bad,) = [item for item in items if isinstance(item, Rejected)]
    assert (bad.reason, bad.units, bad.place) == ("broken-row-group", 10, 10)


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"no parquet at all", b"PAR1" + bytes(50) + b"PAR1"]
)
def test_what_is_no_parquet_is_rejected_as_one(tmp_path: Path, data: bytes) -> None:
    assert reasons(read_all(tmp_path, data, "parquet")) == ["broken-file"]
    path = write(tmp_path, {"text": ["a"] * 100})
    path.write_bytes(path.read_bytes()[:-20])
    assert reasons(read_of_parquet(path)) == ["broken-file"]


def test_a_row_group_beyond_all_bounds_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LARGEST_ROW_GROUP", 10)
    (item,) = read_of_parquet(write(tmp_path, {"text": ["a long text"] * 5}))
    assert isinstance(item, Rejected)
    assert (item.reason, item.units) == ("row-group-too-large", 5)


def test_a_missing_column_is_an_error_that_names_those_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column 'text'.*body, nr"):
        read_of_parquet(write(tmp_path, {"body": ["x"], "nr": [1]}))


def test_row_groups_are_gathered_up_to_the_size_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": [str(i) * 50 for i in range(10)]}, row_group_size=1)
    source = Source(path, "input", "parquet", None, path.stat().st_size)
    assert [(a, b) for a, b, _ in plan_row_groups(source, 1)] == [(i, i + 1) for i in range(10)]
    assert [(a, b) for a, b, _ in plan_row_groups(source, 1 << 30)] == [(0, 10)]


def test_many_rows_that_point_at_one_long_text_are_not_unfolded(tmp_path: Path) -> None:
    long = pa.array(["x " * 3_500_000])
    codes = pa.array([0] * 1_024, pa.int32())
    columns = {"text": pa.DictionaryArray.from_arrays(codes, long)}
    path = write(tmp_path, columns, compression="zstd")
    items = read_of_parquet(path)
    assert reasons(items) == ["broken-row-group"]
    rest = items[-1]
    assert isinstance(rest, Rejected)
    assert "250 times" in rest.detail
    assert len(items) - 1 + rest.units == 1_024
    assert len(items) <= 4


def test_a_cell_that_is_too_large_is_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": ["first", "x" * (40 << 20), "last"]}, compression="zstd")
    items = read_of_parquet(path)
    assert texts(items) == ["first", "last"]
    assert reasons(items) == ["row-too-large"]


def test_pages_that_lie_are_not_unpacked(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": ["a", "b"]}, use_dictionary=False, compression="none")
    data = bytearray(path.read_bytes())
    # The header of the first page: its kind, then its size as a zigzag number.
    assert data[4:6] == b"\x15\x00"
    data[6:8] = b"\x15\xfe"
    path.write_bytes(bytes(data[:8]) + b"\xff\xff\xff\x0f" + bytes(data[12:]))
    assert reasons(read_of_parquet(path)) == ["broken-row-group"]
