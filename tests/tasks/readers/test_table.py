"""Rows with named columns, one text or two."""

import json
from pathlib import Path

import pytest

from polyseme.errors import ConfigError, InputError
from polyseme.tasks.families.classification import Classified, Paired
from polyseme.tasks.families.seq2seq import Translated
from tasks.readers.making import load, reader


def test_csv_with_quotes_commas_and_line_ends_in_fields(tmp_path: Path) -> None:
    text = 'id,text,label\r\n1,"good, ""very"" good\nindeed",pos\r\n2,bad,neg\r\n'
    assert load(tmp_path, text, reader("table"), "a.csv").examples == [
        Classified('good, "very" good\nindeed', "pos"),
        Classified("bad", "neg"),
    ]


def test_tsv_takes_quotes_as_they_are_unless_told(tmp_path: Path) -> None:
    text = 'text\tlabel\n"a ""b"" c"\tx\n'
    assert load(tmp_path, text, reader("table"), "a.tsv").examples == [
        Classified('"a ""b"" c"', "x")
    ]
    assert load(tmp_path, text, reader("table", quoted=True), "a.tsv").examples == [
        Classified('a "b" c', "x")
    ]


def test_a_file_without_header_has_numbered_columns(tmp_path: Path) -> None:
    config = reader("table", text="1", second="2", label="3", header=False, format="tsv")
    assert load(tmp_path, "花呗提额\t提花呗额度\t0\n", config, "dev.txt").examples == [
        Paired("花呗提额", "提花呗额度", "0")
    ]


def test_json_lines_with_texts_words_and_labels_of_any_plain_type(tmp_path: Path) -> None:
    rows = [
        {"text": "a b", "label": "x", "more": {}},
        {"text": ["a", "b c"], "label": 3},
        {"text": "c", "label": True},
    ]
    text = "\n".join(json.dumps(row) for row in rows)
    assert load(tmp_path, text, reader("table"), "a.jsonl").examples == [
        Classified("a b", "x"),
        Classified(("a", "b c"), "3"),
        Classified("c", "true"),
    ]


def test_words_with_spaces_between_are_split_if_told(tmp_path: Path) -> None:
    config = reader("table", text="sentence", is_split=True)
    assert load(tmp_path, "sentence\tlabel\nit 's fine \t1\n", config, "a.tsv").examples == [
        Classified(("it", "'s", "fine"), "1")
    ]


def test_pairs_without_agreement_are_rejected_and_counted(tmp_path: Path) -> None:
    rows = [{"sentence1": "a", "sentence2": "b", "gold_label": label} for label in ("e", "-", "n")]
    text = "\n".join(json.dumps(row) for row in rows)
    config = reader("table", text="sentence1", second="sentence2", label="gold_label")
    loaded = load(tmp_path, text, config, "a.jsonl")
    assert loaded.examples == [Paired("a", "b", "e"), Paired("a", "b", "n")]
    assert loaded.stats.reasons == {"label '-'": 1}
    assert "line 2" in loaded.stats.faults[0]


def test_a_minus_is_a_label_like_any_other_for_single_texts(tmp_path: Path) -> None:
    text = "text\tlabel\ngood\t+\nbad\t-\n"
    assert len(load(tmp_path, text, reader("table"), "a.tsv").examples) == 2
    config = reader("table", reject_labels=["-"])
    assert load(tmp_path, text, config, "a.tsv").examples == [Classified("good", "+")]


def test_bad_rows_are_rejected_each_with_its_line_and_reason(tmp_path: Path) -> None:
    text = b"text\tlabel\ngood\tx\nno label\t\nshort\n\tx\na\tb\tc\n\nbroken\xff\tx\ngood\ty\n"
    loaded = load(tmp_path, text, reader("table"), "a.tsv")
    assert len(loaded.examples) == 2
    assert loaded.stats.reasons == {
        "no-label": 1,
        "wrong-number-of-fields": 2,
        "no-text": 1,
        "not-utf-8": 1,
    }
    lines = [fault.split(", line ")[1].split(":")[0] for fault in loaded.stats.faults]
    assert sorted(lines) == ["3", "4", "5", "6", "8"]
    assert loaded.stats.read == 7


def test_json_that_is_none_is_rejected(tmp_path: Path) -> None:
    text = '{"text": "a", "label": "x"}\n{"text": "a"\n[1]\n{"text": 1, "label": "x"}\n'
    text += '{"text": "a", "label": null}\n' + "[" * 100_000 + "\n"
    text += '{"text": "half a character: \\ud800", "label": "x"}\n'
    loaded = load(tmp_path, text, reader("table"), "a.jsonl")
    assert loaded.stats.reasons == {
        "not-json": 3,
        "not-a-json-object": 1,
        "no-text": 1,
        "no-label": 1,
    }


def test_a_quote_that_is_never_closed_costs_its_own_line_only(tmp_path: Path) -> None:
    text = 'text,label\nfine,x\n"open,x\nnext,x\nlast,x\n'
    loaded = load(tmp_path, text, reader("table"), "a.csv")
    assert loaded.examples == [Classified(word, "x") for word in ("fine", "next", "last")]
    assert loaded.stats.reasons == {"broken-row": 1}
    assert "line 3, read on to line 5" in loaded.stats.faults[0]


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"a\.tsv, line 1: expected one column 'text', found words"
    ):
        load(tmp_path, "words\tlabel\na\tb\n", reader("table"), "a.tsv")


def test_a_column_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected one column 'text', found text, text, label"):
        load(tmp_path, "text\ttext\tlabel\na\tb\tc\n", reader("table"), "a.tsv")


def test_a_file_of_unknown_kind_asks_for_its_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="csv, tsv or jsonl"):
        load(tmp_path, "a\tb\n", reader("table"), "a.txt")


def test_a_text_to_be_written_stands_in_a_column_of_its_own(tmp_path: Path) -> None:
    data = "book\told\tnew\n三十六计\t阴以 待逆。\t静观。\n三十六计\t空\t\n"
    config = reader("table", text="old", target="new", by_character=True)
    loaded = load(tmp_path, data, config, "file.tsv")
    assert loaded.examples == [Translated("阴以 待逆。", "静观。", by_character=True)]
    assert loaded.stats.reasons == {"no-text": 1}
    split = reader("table", text="old", target="new", is_split=True)
    assert load(tmp_path, "old\tnew\na b\tc\n", split, "file.tsv").examples == [
        Translated(("a", "b"), ("c",))
    ]
    with pytest.raises(ConfigError, match="not both"):
        reader("table", second="x", target="new")
