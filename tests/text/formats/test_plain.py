"""Plain text in its layouts."""

from pathlib import Path

import pytest

from polyseme.text import streams
from polyseme.text.formats.lines import LONGEST_PARAGRAPH
from text.making import make_config, num_blank, read_all, reasons, records, texts

DATA = b"one\ntwo\n\n  \nthree\n"


def test_articles_are_parted_by_blank_lines(tmp_path: Path) -> None:
    found = records(read_all(tmp_path, DATA))
    assert [(record.document, record.text) for record in found] == [
        ("input@0", "one"),
        ("input@0", "two"),
        ("input@12", "three"),
    ]


def test_each_line_is_a_document_in_lines(tmp_path: Path) -> None:
    found = records(read_all(tmp_path, DATA, config=make_config(layout="lines")))
    assert [record.document for record in found] == ["input@0", "input@4", "input@12"]


def test_wrapped_lines_are_joined_and_the_file_is_one_document(tmp_path: Path) -> None:
    found = records(read_all(tmp_path, DATA, config=make_config(layout="wrapped")))
    assert [(r.document, r.text, r.units) for r in found] == [
        ("input", "one two", 2),
        ("input", "three", 1),
    ]


@pytest.mark.parametrize("layout", ["auto", "unwrapped"])
def test_a_file_is_a_document_whose_lines_are_paragraphs(tmp_path: Path, layout: str) -> None:
    found = records(read_all(tmp_path, DATA, config=make_config(layout=layout)))
    assert [(r.document, r.text) for r in found] == [
        ("input", "one"),
        ("input", "two"),
        ("input", "three"),
    ]


@pytest.mark.parametrize("layout", ["auto", "wrapped", "unwrapped", "articles", "lines"])
def test_blank_lines_are_counted_in_every_layout(tmp_path: Path, layout: str) -> None:
    assert num_blank(read_all(tmp_path, DATA, config=make_config(layout=layout))) == 2


def test_a_bad_line_parts_paragraphs(tmp_path: Path) -> None:
    items = read_all(tmp_path, b"a\n\xff\nb\n", config=make_config(layout="wrapped"))
    assert texts(items) == ["a", "b"]
    assert reasons(items) == ["not-utf-8"]


def test_a_bad_line_ends_no_article(tmp_path: Path) -> None:
    items = read_all(tmp_path, b"a\n\xff\nb\n")
    assert {record.document for record in records(items)} == {"input@0"}


def test_an_endless_paragraph_is_cut_in_bounded_pieces(tmp_path: Path) -> None:
    lines = [b"x" * 1000] * 3000
    items = read_all(tmp_path, b"\n".join(lines), config=make_config(layout="wrapped"))
    assert sum(record.units for record in records(items)) == 3000
    assert max(len(text) for text in texts(items)) <= 1.1 * LONGEST_PARAGRAPH


def test_lines_of_chinese_are_joined_without_a_space(tmp_path: Path) -> None:
    data = "天下\n雨。\n他说 ok\nyes\n".encode()
    items = read_all(tmp_path, data, config=make_config(layout="wrapped"))
    assert texts(items) == ["天下雨。他说 ok yes"]


def test_windows_line_ends_leave_no_trace(tmp_path: Path) -> None:
    assert texts(read_all(tmp_path, b"one\r\ntwo\r\n")) == ["one", "two"]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (record,) = records(read_all(tmp_path, b"\xef\xbb\xbfone\n"))
    assert (record.text, record.document) == ("one", "input@3")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path: Path, encoding: str) -> None:
    data = "\ufeffeins\n中文\r\n\nਊ😀".encode(encoding)
    assert texts(read_all(tmp_path, data)) == ["eins", "中文", "ਊ😀"]


@pytest.mark.parametrize("encoding", ["gb18030", "big5", "shift_jis", "cp1252"])
def test_the_stated_encoding_is_used(tmp_path: Path, encoding: str) -> None:
    text = "déjà" if encoding == "cp1252" else "中文"
    items = read_all(tmp_path, f"{text}\n".encode(encoding), config=make_config(encoding=encoding))
    assert texts(items) == [text]


def test_a_wrongly_encoded_line_is_rejected_by_itself(tmp_path: Path) -> None:
    items = read_all(tmp_path, b"good\n" + "中文".encode("gb18030") + b"\ngood\n")
    assert texts(items) == ["good", "good"]
    assert reasons(items) == ["not-utf-8"]


def test_an_overlong_line_is_rejected_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LONGEST_LINE", 100)
    items = read_all(tmp_path, b"good\n" + b"x" * 101 + b"\ngood\n")
    assert texts(items) == ["good", "good"]
    assert reasons(items) == ["line-too-long"]


def test_metadata_columns_are_there_but_empty(tmp_path: Path) -> None:
    (record,) = records(read_all(tmp_path, b"a\n", config=make_config(meta=("x", "y"))))
    assert record.meta == (None, None)


def test_an_empty_file_has_nothing_in_it(tmp_path: Path) -> None:
    assert read_all(tmp_path, b"") == []
