"""JSON lines: an object a line; what is not one is rejected by itself."""

import json
from pathlib import Path

import pytest

from polyseme.text.records import Rejected
from text.making import make_config, num_blank, read_all, reasons, records, texts


def test_each_object_is_a_document(tmp_path: Path) -> None:
    found = records(read_all(tmp_path, b'{"text": "one"}\n{"text": "two\\nlines"}\n', "jsonl"))
    assert [(record.document, record.text) for record in found] == [
        ("input@0", "one"),
        ("input@16", "two\nlines"),
    ]


def test_the_columns_asked_for_are_used(tmp_path: Path) -> None:
    row = {"body": "x", "nr": 7, "date": 1850, "tags": ["a"], "none": None}
    config = make_config(text_column="body", id_column="nr", meta=("date", "tags", "none", "no"))
    (record,) = records(read_all(tmp_path, json.dumps(row).encode(), "jsonl", config))
    assert (record.document, record.text) == ("7", "x")
    assert record.meta == ("1850", "['a']", None, None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not-json"),
        ('{"text": "half', "not-json"),
        ("plain text", "not-json"),
        ('{"text": "x"} {"text": "y"}', "not-json"),
        ('{"text": ' + "9" * 5000 + "}", "not-json"),
        ("[" * 100_000, "not-json"),
        ('{"text": ' + "[" * 100_000, "not-json"),
        ('["text"]', "not-a-json-object"),
        ("3", "not-a-json-object"),
        ("NaN", "not-a-json-object"),
        ("null", "not-a-json-object"),
        ("{}", "no-text"),
        ('{"text": null}', "no-text"),
        ('{"text": 3}', "text-not-a-string"),
        ('{"text": NaN}', "text-not-a-string"),
        ('{"text": ["x"]}', "text-not-a-string"),
    ],
)
def test_a_line_that_is_no_document_is_rejected_by_itself(
    tmp_path: Path, line: str, reason: str
) -> None:
    data = f'{{"text": "before"}}\n{line}\n{{"text": "after"}}\n'
    items = read_all(tmp_path, data.encode(), "jsonl")
    assert texts(items) == ["before", "after"]
    assert reasons(items) == [reason]


@pytest.mark.parametrize("depth", [100, 300, 500, 700, 900, 950])
@pytest.mark.parametrize("column", ["text", "date", "other"])
def test_nesting_just_short_of_too_deep_crashes_nothing(
    tmp_path: Path, depth: int, column: str
) -> None:
    nested = "[" * depth + "]" * depth
    data = f'{{"{column}": {nested}}}\n{{"text": "after"}}\n'
    items = read_all(tmp_path, data.encode(), "jsonl", make_config(meta=("date",)))
    assert texts(items) == ["after"]
    assert len(reasons(items)) == 1


def test_a_rejected_line_is_quoted_in_writable_form(tmp_path: Path) -> None:
    (item,) = read_all(tmp_path, b'{"other": "\\ud800"}', "jsonl")
    assert isinstance(item, Rejected)
    assert "ud800" in item.quote.encode("utf-8").decode()


def test_an_empty_text_is_blank(tmp_path: Path) -> None:
    assert num_blank(read_all(tmp_path, b'{"text": " \\n"}\n\n', "jsonl")) == 2


@pytest.mark.parametrize(
    "row", ['{"text": "x"}', '{"text": "x", "id": null}', '{"text": "x", "id": ""}']
)
def test_a_row_without_its_id_is_rejected(tmp_path: Path, row: str) -> None:
    items = read_all(tmp_path, row.encode(), "jsonl", make_config(id_column="id"))
    assert reasons(items) == ["no-id"]
