"""More than forty kinds of bad input, each with how many units of it there are to account for."""

import io
import json
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from text.documents import lock_pdf, make_docx, make_epub, make_pdf, make_zip, word_paragraph
from text.making import pack

from polyseme.text.settings import InputFormat
from polyseme.text.sources import Compression

GOOD = "A good line of words .\n"
WORDS = random.Random(7).choices("abcdefghij", k=200_000)


@dataclass(frozen=True)
class Kind:
    """One bad file. `units` and `kept` are None where a break makes them uncountable."""

    data: bytes
    units: int | None
    kept: int | None
    format: InputFormat = "text"
    compression: Compression | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = 5.0
    """How long it may take. A PDF has a process of its own, which has to start."""


def around(middle: bytes, units: int = 1, kept: int = 0, **more: Any) -> Kind:
    """Something between two good lines."""
    good = GOOD.encode()
    return Kind(good + middle + good, 2 + units, 2 + kept, **more)


def many_lines() -> bytes:
    """Text that does not pack well, so that a broken packed file has something before the break."""
    letters = "".join(WORDS)
    return "".join(letters[i : i + 50] + "\n" for i in range(0, len(letters), 50)).encode()


def truncated(compression: Compression) -> Kind:
    packed = pack(many_lines(), compression)
    return Kind(packed[: len(packed) * 3 // 4], None, None, compression=compression)


def table(columns: dict[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def broken_row_group() -> bytes:
    data = table({"text": [f"row {i}" for i in range(30)]}, row_group_size=10, use_dictionary=False)
    metadata = pq.read_metadata(io.BytesIO(data)).row_group(1).column(0)
    begin, size = metadata.data_page_offset, metadata.total_compressed_size
    broken: bytes = data[:begin] + b"\xff" * size + data[begin + size :]
    return broken


def conllu(*forms: str) -> str:
    lines = [f"{i}\t{form}" + "\t_" * 8 for i, form in enumerate(forms, 1)]
    return "\n".join(lines) + "\n\n"


def json_line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def jsonl(middle: bytes, units: int = 1, kept: int = 0) -> Kind:
    good = json_line({"text": "good words"})
    return Kind(good + middle + good, 2 + units, 2 + kept, "jsonl")


def tei(body: str) -> bytes:
    return f"<TEI><text>{body}</text></TEI>".encode()


TEXT_KINDS: dict[str, Callable[[], Kind]] = {
    "invalid UTF-8": lambda: around(b"caf\xe9 au lait\n"),
    "overlong UTF-8": lambda: around(b"\xc0\xaf\n"),
    "a surrogate in UTF-8": lambda: around(b"\xed\xa0\x80\n"),
    "half a character at the end": lambda: Kind("中".encode()[:2], 1, 0),
    "NUL": lambda: around(b"a\0b\n"),
    "nothing but NUL": lambda: Kind(bytes(5000) + b"\n", 1, 0),
    "a line of NUL": lambda: around(bytes(300) + b"\n"),
    "a line of 1 MB": lambda: around(b"word " * 200_000 + b"\n", kept=1),
    "a line of 1 MB without a space": lambda: around(b"x" * 1_000_000 + b"\n", kept=1),
    "a line of 20 MB": lambda: around(b"word " * 4_000_000 + b"\n"),
    "20 MB without a line end": lambda: Kind(b"x" * 20_000_000, 1, 0),
    "an empty file": lambda: Kind(b"", 0, 0),
    "blank documents": lambda: around(b"\n \n\t\n\r\n", units=4),
    "white space only": lambda: Kind(" \t\u3000\n\u00a0\n\n".encode(), 3, 0),
    "right-to-left": lambda: around("שלום \u202eעולם\u202c مرحبا\n".encode(), kept=1),
    "emoji and joiners": lambda: around("👩‍🔬👨‍👩‍👧‍👦 🏳️‍🌈 ❤️\n".encode(), kept=1),
    "a word of 10,000 letters": lambda: around(b"a" * 10_000 + b"\n", kept=1),
    "control characters": lambda: around(bytes(range(1, 9)) + b" word \x7f\x1b[31m\n", kept=1),
    "Windows line ends": lambda: Kind(b"one\r\n\r\ntwo\r\n", 3, 2),
    "old Mac line ends": lambda: Kind(b"one\rtwo\rthree\r", 1, 1),
    "a byte-order mark": lambda: Kind(b"\xef\xbb\xbf" + GOOD.encode(), 1, 1),
    "a byte-order mark alone": lambda: Kind(b"\xef\xbb\xbf", 0, 0),
    "a byte-order mark in the middle": lambda: around("\ufeffword\n".encode(), kept=1),
    "UTF-16 little-endian": lambda: Kind(("\ufeff" + GOOD * 3).encode("utf-16-le"), 3, 3),
    "UTF-16 big-endian": lambda: Kind(("\ufeff" + GOOD * 3).encode("utf-16-be"), 3, 3),
    "UTF-16 with half a character": lambda: Kind(
        ("\ufeff" + GOOD * 3).encode("utf-16-le") + b"x", 4, 3
    ),
    "UTF-16 with a lone surrogate": lambda: Kind(
        ("\ufeff" + GOOD).encode("utf-16-le") + b"\x00\xd8\n\0", 2, 1
    ),
    "UTF-16 without a mark": lambda: Kind("word\n".encode("utf-16-le") * 2, 3, 0),
    "UTF-32": lambda: Kind(("\ufeff" + GOOD * 3).encode("utf-32-le"), 3, 3),
    "GB18030 as UTF-8": lambda: around("汉字编码\n".encode("gb18030")),
    "Big5 as UTF-8": lambda: around("漢字編碼\n".encode("big5")),
    "UTF-8 as GB18030": lambda: Kind(
        "汉字编\n".encode() + b"ok\n", 2, None, settings={"encoding": "gb18030"}
    ),
    "several encodings in one file": lambda: around(
        "中文\n".encode() + "中文\n".encode("gb18030") + "été\n".encode("latin-1"), 3, 1
    ),
    "a pile of combining marks": lambda: around(
        ("Z" + "\u0301\u0316" * 5000 + "\n").encode(), settings={"unicode_normalization": "NFC"}
    ),
    "form feeds": lambda: around(b"page\x0cpage\x0b\n", kept=1),
    "line separators of Unicode": lambda: around("a\u2028b\u2029c\u0085d\n".encode(), kept=1),
    "private use and noncharacters": lambda: around(
        "\ue000 \ufffe \uffff \U0010ffff \ufdd0\n".encode(), kept=1
    ),
    "no final line end": lambda: Kind(GOOD.encode() + b"last", 2, 2),
    "100,000 empty lines": lambda: Kind(b"\n" * 100_000, 100_000, 0),
    "100,000 bad lines": lambda: Kind(b"\xff\n" * 100_000, 100_000, 0),
    "random bytes": lambda: Kind(b"r" + random.Random(3).randbytes(200_000), 1, 0),
    "an unclosed paragraph of a million lines": lambda: Kind(
        b"w\n" * 300_000, 300_000, 300_000, settings={"layout": "wrapped"}
    ),
}

PACKED_KINDS: dict[str, Callable[[], Kind]] = {
    **{
        f"truncated {name}": lambda name=name: truncated(name)  # type: ignore[misc]
        for name in ("gz", "bz2", "xz", "zst")
    },
    **{
        f"garbage named {name}": lambda name=name: Kind(  # type: ignore[misc]
            GOOD.encode() * 20, 1, 0, compression=name
        )
        for name in ("gz", "bz2", "xz", "zst")
    },
    **{
        f"no bytes named {name}": lambda name=name: Kind(  # type: ignore[misc]
            b"", 0, 0, compression=name
        )
        for name in ("gz", "bz2", "xz", "zst")
    },
    "gz with garbage behind": lambda: Kind(
        pack(GOOD.encode() * 5, "gz") + b"garbage", 6, 5, compression="gz"
    ),
    "gz with a wrong checksum": lambda: Kind(
        pack(many_lines(), "gz")[:-8] + bytes(8), None, None, compression="gz"
    ),
    "gz inside gz": lambda: Kind(
        pack(pack(many_lines(), "gz"), "gz"), None, None, compression="gz"
    ),
}

TABLE_KINDS: dict[str, Callable[[], Kind]] = {
    "Parquet of no bytes": lambda: Kind(b"", 1, 0, "parquet"),
    "Parquet without rows": lambda: Kind(
        table({"text": pa.array([], pa.string())}), 0, 0, "parquet"
    ),
    "Parquet cut short": lambda: Kind(table({"text": ["a"] * 100})[:-30], 1, 0, "parquet"),
    "Parquet with a broken row group": lambda: Kind(broken_row_group(), 30, 20, "parquet"),
    "Parquet with numbers for text": lambda: Kind(table({"text": [1, 2, 3]}), 3, 0, "parquet"),
    "Parquet with nothing for text": lambda: Kind(
        table({"text": [None, "", "x"]}), 3, 1, "parquet"
    ),
    "Parquet with text that is not UTF-8": lambda: Kind(
        table({"text": pa.array([b"a", b"\xff", b"b"]).cast(pa.string(), safe=False)}),
        3,
        2,
        "parquet",
    ),
    "CSV with an unclosed quote": lambda: Kind(b'text\none\n"two\nthree\n', 3, 2, "csv"),
    "CSV with wrong numbers of fields": lambda: Kind(
        b"id,text\n1,one\n2\n3,three,more\n4,four\n", 4, 2, "csv"
    ),
    "CSV with a bad line": lambda: Kind(b"text\none\n\xff\ntwo\n", 3, 2, "csv"),
    "CSV with NUL": lambda: Kind(b"text\none\na\0b\ntwo\n", 3, 2, "csv"),
    "CSV with a header alone": lambda: Kind(b"text\n", 0, 0, "csv"),
    "TSV with a lone carriage return": lambda: Kind(b"text\tn\na\rb\t1\nc\t2\n", 2, 1, "tsv"),
    "JSONL with half a line": lambda: jsonl(b'{"text": "ha\n'),
    "JSONL with an array": lambda: jsonl(b'["text"]\n'),
    "JSONL with NaN": lambda: jsonl(b'{"text": NaN}\nNaN\n', 2),
    "JSONL nested deep": lambda: jsonl(b'{"text":' + b"[" * 200_000 + b"\n"),
    "JSONL nested almost too deep": lambda: jsonl(b'{"a":' + b"[" * 900 + b"]" * 900 + b"}\n"),
    "JSONL with lone surrogates": lambda: jsonl(b'{"text": "a\\ud800b"}\n'),
    "JSONL with NUL": lambda: jsonl(b'{"text": "a\\u0000b"}\n'),
    "JSONL with a huge number": lambda: jsonl(b'{"text": ' + b"9" * 10_000 + b"}\n"),
    "JSONL with the text twice": lambda: jsonl(b'{"text": 1, "text": "x"}\n', kept=1),
    "JSONL as one array over many lines": lambda: Kind(
        b'[\n{"text": "a"},\n{"text": "b"}\n]\n', 4, 1, "jsonl"
    ),
}

MARKED_KINDS: dict[str, Callable[[], Kind]] = {
    "XML that breaks off": lambda: Kind(tei("<p>One.</p><p>Two.</p>")[:-20], None, 1, "tei"),
    "XML with a wrong tag": lambda: Kind(tei("<p>One.</p><p>Two.</q>"), 2, 1, "tei"),
    "XML with an entity bomb": lambda: Kind(
        b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>' + tei("<p>&b;</p>"),
        1,
        0,
        "tei",
    ),
    "XML nested deep": lambda: Kind(tei("<p>One.</p>" + "<div>" * 500_000), 2, 1, "tei"),
    "XML in an encoding the parser lacks": lambda: Kind(
        '<?xml version="1.0" encoding="gb18030"?><TEI><p>中</p></TEI>'.encode("gb18030"),
        1,
        0,
        "tei",
    ),
    "XML of no bytes": lambda: Kind(b"", 1, 0, "tei"),
    "XML with a million attributes": lambda: Kind(
        tei("<p " + " ".join(f'a{i}="x"' for i in range(50_000)) + ">One.</p>"), 1, 1, "tei"
    ),
    "CoNLL-U with 9 columns": lambda: Kind(
        (conllu("Good") + conllu("Bad")[:-4] + "\n\n" + conllu("Good")).encode(), 3, 2, "conllu"
    ),
    "CoNLL-U with odd numbers": lambda: Kind(
        (conllu("Good") + conllu("a", "b").replace("2\t", "²\t") + conllu("Good")).encode(),
        3,
        2,
        "conllu",
    ),
    "CoNLL-U with a bad line": lambda: Kind(
        conllu("Good").encode() + b"\xff\n" + conllu("Bad").encode() + conllu("Good").encode(),
        3,
        2,
        "conllu",
    ),
    "CoNLL-U that is plain text": lambda: Kind(GOOD.encode() * 3, 1, 0, "conllu"),
    "vertical text without closing tags": lambda: Kind(
        b"<text>\n<s>\na\n<s>\nb\n<text>\nc\n", 3, 3, "vertical"
    ),
    "vertical text with a bad line": lambda: Kind(b"<s>\na\n\xff\nb\n</s>\n", 2, 1, "vertical"),
    "vertical text with broken tags": lambda: Kind(
        b'<s>\n<text id="\n<<<\n</\n<s\n</s>\n', 1, 1, "vertical"
    ),
}

PAGE = "<html><body>{}</body></html>"


def epub(chapter: str) -> bytes:
    """A bad chapter before a good one."""
    return make_epub({"b.xhtml": PAGE.format("<p>Good.</p>"), "a.xhtml": chapter})


def pdf(data: bytes, units: int | None, kept: int | None) -> Kind:
    return Kind(data, units, kept, "pdf", seconds=20)


def pdf_bomb() -> bytes:
    """A page whose content unpacks to 300 MB of spaces, packed twice over."""
    content = zlib.compress(zlib.compress(b" " * (300 << 20), 9), 9)
    head = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n" % len(content)
    return make_pdf([head + content + b"\nendstream", ["Two."]])


DOCUMENT_KINDS: dict[str, Callable[[], Kind]] = {
    "HTML that breaks off": lambda: Kind(b"<p>One.<p>Two <b", 2, 2, "html"),
    "HTML of no bytes": lambda: Kind(b"", 0, 0, "html"),
    "HTML of NUL": lambda: Kind(b"<p>One.<p>" + bytes(400), 2, 1, "html"),
    "HTML nested deep": lambda: Kind(b"<p>One.</p>" + b"<div>" * 500_000, 2, 1, "html"),
    "HTML of unclosed tags": lambda: Kind(b"<p>One.</p>" + b"<a<b<i" * 200_000, None, 1, "html"),
    "HTML of end tags": lambda: Kind(b"</p></b>" * 300_000 + b"<p>One.", None, None, "html"),
    "HTML with an attribute of 20 MB": lambda: Kind(
        b'<p>One.</p><p a="' + b"x" * 20_000_000, 2, 1, "html"
    ),
    "HTML of random bytes": lambda: Kind(random.Random(4).randbytes(200_000), 1, 0, "html"),
    "HTML that is a broken gz": lambda: Kind(b"no gzip", 1, 0, "html", "gz"),
    "EPUB of no bytes": lambda: Kind(b"", 1, 0, "epub"),
    "EPUB without contents": lambda: Kind(make_zip({"a": "b"}), 1, 0, "epub"),
    "EPUB cut short": lambda: Kind(epub("<p/>")[:-50], 1, 0, "epub"),
    "EPUB with a wrong tag": lambda: Kind(epub("<html><p>One.</p><p>Two.</q>"), 3, 2, "epub"),
    "EPUB with a bomb": lambda: Kind(epub("<p>" + "x" * (50 << 20)), 2, 0, "epub"),
    "EPUB with an entity bomb": lambda: Kind(
        epub('<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><html><p>&b;</p></html>'),
        2,
        1,
        "epub",
    ),
    "DOCX of no bytes": lambda: Kind(b"", 1, 0, "docx"),
    "DOCX with a password": lambda: Kind(b"\xd0\xcf\x11\xe0" + bytes(5000), 1, 0, "docx"),
    "DOCX that breaks off": lambda: Kind(make_docx(word_paragraph("a") + "<w:p>"), 2, 1, "docx"),
    "DOCX nested deep": lambda: Kind(make_docx(word_paragraph("a") + "<w:p>" * 99_999), None, 1,
                                     "docx"),
    "PDF of no bytes": lambda: pdf(b"", 1, 0),
    "PDF cut short": lambda: pdf(make_pdf([["One."]] * 3)[:600], 1, 0),
    "PDF without a table of objects": lambda: pdf(
        make_pdf([["One."]]).partition(b"xref")[0], None, None
    ),
    "PDF with a password": lambda: pdf(lock_pdf(make_pdf([["One."]]), "x"), 1, 0),
    "PDF of scans": lambda: pdf(make_pdf([[], [], []]), 3, 0),
    "PDF with pages in a circle": lambda: pdf(
        make_pdf([["One."]]).replace(b"/Kids [7 0 R]", b"/Kids [2 0 R]"), 1, 0
    ),
    "PDF with a bomb": lambda: pdf(pdf_bomb(), 2, 1),
}  # fmt: skip

KINDS = {**TEXT_KINDS, **PACKED_KINDS, **TABLE_KINDS, **MARKED_KINDS, **DOCUMENT_KINDS}
