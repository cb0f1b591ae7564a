"""CSV and TSV: a row a document."""

import csv
import io
import time
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.errors import InputError
from polyseme.text.formats import tables
from polyseme.text.records import Rejected
from text.making import (
    make_config,
    make_piece,
    make_source,
    num_blank,
    read_all,
    reasons,
    records,
    texts,
)


def test_each_row_is_a_document_named_by_its_number(tmp_path: Path) -> None:
    found = records(read_all(tmp_path, b"id,text\n1,one\n2,two\n", "csv"))
    assert [(r.document, r.text) for r in found] == [("input#1", "one"), ("input#2", "two")]


def test_ids_and_metadata_come_from_their_columns(tmp_path: Path) -> None:
    config = make_config(text_column="body", id_column="nr", meta=("date",))
    (record,) = records(read_all(tmp_path, b"date,nr,body\n1850,x7,one\n", "csv", config))
    assert (record.document, record.text, record.meta) == ("x7", "one", ("1850",))


def test_a_quoted_field_may_hold_line_ends_commas_and_quotes(tmp_path: Path) -> None:
    data = b'text,n\r\n"one\r\ntwo, ""three""",1\r\nfour,2\r\n'
    assert texts(read_all(tmp_path, data, "csv")) == ['one\ntwo, "three"', "four"]


def test_an_unclosed_quote_costs_its_own_line_only(tmp_path: Path) -> None:
    rows = [b"%d,row %d" % (n, n) for n in range(1000)]
    rows[9] = b'9,"row 9'
    items = read_all(tmp_path, b"id,text\n" + b"\n".join(rows), "csv")
    assert texts(items) == [f"row {n}" for n in range(1000) if n != 9]
    (bad,) = [item for item in items if isinstance(item, Rejected)]
    assert (bad.reason, bad.units, bad.quote) == ("broken-row", 1, '9,"row 9')
    assert "line 11, read on to line 1001" in bad.detail


def test_a_quote_closed_by_that_of_a_later_row_costs_its_own_line_only(tmp_path: Path) -> None:
    data = b'id,text\n1,"one\n2,two\n3,"three, four"\n4,five\n'
    items = read_all(tmp_path, data, "csv")
    assert texts(items) == ["two", "three, four", "five"]
    assert reasons(items) == ["broken-row"]


@pytest.mark.parametrize("line", [b'"a', b'a,"', b'"""a', b'""a', b'5" a', b'"a\n""', b'"a",""b'])
def test_lines_of_stray_quotes_take_time_in_proportion(tmp_path: Path, line: bytes) -> None:
    def seconds(number: int) -> float:
        began = time.process_time()
        items = read_all(tmp_path, b"text\n" + (line + b"\n") * number, "csv")
        taken = time.process_time() - began
        assert len(items) >= number / 2
        return taken

    # The best of three: garbage of other tests may be collected in one of them.
    few, many = (min(seconds(number) for _ in range(3)) for number in (2_000, 8_000))
    assert many < 10 * few + 0.1, (few, many)


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_two_columns_of_the_name_asked_for_are_an_error_that_names_them(
    tmp_path: Path, kind: Literal["csv", "tsv"]
) -> None:
    header = b"text,id,text\n" if kind == "csv" else b"text\tid\ttext\n"
    piece = make_piece(make_source(tmp_path, header, kind))
    with pytest.raises(InputError, match=r"2 columns named 'text' \(columns 1, 3\)"):
        list(tables.read_table(piece, make_config()))


def test_two_columns_of_a_name_nobody_asked_for_do_no_harm(tmp_path: Path) -> None:
    assert texts(read_all(tmp_path, b"n,text,n\n1,one,2\n", "csv")) == ["one"]


def test_a_wrongly_quoted_row_is_rejected_by_itself(tmp_path: Path) -> None:
    items = read_all(tmp_path, b'text\none\n"two" x\nthree\n', "csv")
    assert texts(items) == ["one", "three"]
    assert reasons(items) == ["broken-row"]


def test_a_field_beyond_all_bounds_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LONGEST_LINE", 100)
    data = b'text\n"' + b"x\n" * 60 + b"good\n" * 3
    items = read_all(tmp_path, data, "csv")
    assert "broken-row" in reasons(items)
    assert texts(items)[-1] == "good"


@pytest.mark.parametrize("row", [b"a,b,c", b"a", b'"a,b"'])
def test_a_row_with_the_wrong_number_of_fields_is_rejected_by_itself(
    tmp_path: Path, row: bytes
) -> None:
    items = read_all(tmp_path, b"id,text\n1,one\n" + row + b"\n2,two\n", "csv")
    assert texts(items) == ["one", "two"]
    assert reasons(items) == ["wrong-number-of-fields"]


def test_a_badly_encoded_line_is_rejected_by_itself(tmp_path: Path) -> None:
    items = read_all(tmp_path, b"text\none\n\xff\ntwo\n", "csv")
    assert texts(items) == ["one", "two"]
    assert reasons(items) == ["not-utf-8"]


def test_bad_lines_inside_an_unclosed_quote_are_told_too(tmp_path: Path) -> None:
    items = read_all(tmp_path, b'text\n"two\n\xff\nthree\n', "csv")
    assert sorted(reasons(items)) == ["broken-row", "not-utf-8"]


def test_blank_lines_and_empty_fields_are_blank(tmp_path: Path) -> None:
    items = read_all(tmp_path, b"text,n\n\n ,1\none,2\n", "csv")
    assert num_blank(items) == 2
    assert texts(items) == ["one"]


def test_a_missing_column_is_an_error_that_names_those_there(tmp_path: Path) -> None:
    piece = make_piece(make_source(tmp_path, b"id;body\n", "csv"))
    with pytest.raises(InputError, match=r"input has no column 'text'.*id;body.*--text-column"):
        list(tables.read_table(piece, make_config()))


@pytest.mark.parametrize("values", [{"meta": ("date",)}, {"id_column": "date"}])
def test_a_missing_column_of_any_use_is_an_error(tmp_path: Path, values: dict[str, object]) -> None:
    piece = make_piece(make_source(tmp_path, b"text\nx\n", "csv"))
    with pytest.raises(InputError, match="no column 'date'"):
        list(tables.read_table(piece, make_config(**values)))


def test_quotes_mean_nothing_in_tsv(tmp_path: Path) -> None:
    items = read_all(tmp_path, b'text\tn\n"one\t1\n5" disk\t2\n', "tsv")
    assert texts(items) == ['"one', '5" disk']


def test_a_lone_carriage_return_costs_one_row(tmp_path: Path) -> None:
    items = read_all(tmp_path, b"text,n\none,1\ntw\ro,2\nthree,3\n", "csv")
    assert texts(items)[0] == "one"
    assert texts(items)[-1] == "three"
    assert reasons(items) == ["broken-row"]


def test_an_empty_file_and_a_bare_header_have_no_rows(tmp_path: Path) -> None:
    assert read_all(tmp_path, b"", "csv") == []
    assert read_all(tmp_path, b"text\n", "csv") == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(alphabet='ab ,"\né中', min_size=1).filter(str.strip), max_size=10))
def test_what_pythons_writer_wrote_is_read_back(values: list[str]) -> None:
    import tempfile

    out = io.StringIO(newline="")
    csv.writer(out).writerows([["n", "text"], *enumerate(values)])
    with tempfile.TemporaryDirectory() as folder:
        assert texts(read_all(Path(folder), out.getvalue().encode(), "csv")) == values


def test_space_around_the_names_of_columns_is_not_theirs(tmp_path: Path) -> None:
    config = make_config(meta=("year", " author"))
    assert config.meta == ("year", "author")
    (record,) = records(read_all(tmp_path, b"text, year , author\nx,1,Y\n", "csv", config))
    assert record.meta == ("1", "Y")
    with pytest.raises(ValueError, match="a name is empty"):
        make_config(meta=("year", " "))
