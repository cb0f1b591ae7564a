"""Rows with named columns, one text or two.

Questions in SQuAD's JSON.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from polyseme.errors import ConfigError, InputError
from polyseme.tasks.families.classification import Classified, Paired
from polyseme.tasks.families.question_answering import Answer, Question
from polyseme.tasks.families.seq2seq import Translated
from polyseme.tasks.readers import Loaded
from tasks.readers.making import load, reader

JSON = [
    {"text": "a b", "label": "x", "more": {}},
    {"text": ["a", "b c"], "label": 3},
    {"text": "c", "label": True},
]


@pytest.mark.parametrize(
    ("file", "settings", "text", "expected"),
    [
        ("a.csv", {}, 'id,text,label\r\n1,"good, ""very"" good\nindeed",pos\r\n2,bad,neg\r\n',
         [Classified('good, "very" good\nindeed', "pos"), Classified("bad", "neg")]),
        ("a.tsv", {}, 'text\tlabel\n"a ""b"" c"\tx\n', [Classified('"a ""b"" c"', "x")]),
        ("a.tsv", {"quoted": True}, 'text\tlabel\n"a ""b"" c"\tx\n', [Classified('a "b" c', "x")]),
        ("dev.txt", {"text": "1", "second": "2", "label": "3", "header": False, "format": "tsv"},
         "花呗提额\t提花呗额度\t0\n", [Paired("花呗提额", "提花呗额度", "0")]),
        ("a.jsonl", {}, "\n".join(map(json.dumps, JSON)),
         [Classified("a b", "x"), Classified(("a", "b c"), "3"), Classified("c", "true")]),
        ("a.tsv", {"text": "sentence", "is_split": True}, "sentence\tlabel\nit 's fine \t1\n",
         [Classified(("it", "'s", "fine"), "1")]),
        # For single texts a minus is a label like any other.
        ("a.tsv", {}, "text\tlabel\ngood\t+\nbad\t-\n",
         [Classified("good", "+"), Classified("bad", "-")]),
        ("a.tsv", {"reject_labels": ["-"]}, "text\tlabel\ngood\t+\nbad\t-\n",
         [Classified("good", "+")]),
    ],
)  # fmt: skip
def test_rows_are_read_as_they_are_meant(
    tmp_path: Path, file: str, settings: dict[str, Any], text: str, expected: list[Any]
) -> None:
    assert load(tmp_path, text, reader("table", **settings), file).examples == expected


def test_pairs_without_agreement_are_rejected_and_counted(tmp_path: Path) -> None:
    rows = [{"sentence1": "a", "sentence2": "b", "gold_label": label} for label in ("e", "-", "n")]
    text = "\n".join(json.dumps(row) for row in rows)
    config = reader("table", text="sentence1", second="sentence2", label="gold_label")
    loaded = load(tmp_path, text, config, "a.jsonl")
    assert loaded.examples == [Paired("a", "b", "e"), Paired("a", "b", "n")]
    assert loaded.stats.reasons == {"label '-'": 1}
    assert "line 2" in loaded.stats.faults[0]


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


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("a.tsv", "words\tlabel\na\tb\n", r"a\.tsv, line 1: .*one column 'text', found words"),
        ("a.tsv", "text\ttext\tlabel\na\tb\tc\n", "one column 'text', found text, text, label"),
        ("a.txt", "a\tb\n", "csv, tsv or jsonl"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_clear_is_refused(
    tmp_path: Path, file: str, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load(tmp_path, text, reader("table"), file)


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


PASSAGE = "In 1066 William won. William died in 1087."


def written(*questions: Any, context: Any = PASSAGE) -> str:
    paragraph = {"context": context, "qas": list(questions)}
    return json.dumps({"version": "1.1", "data": [{"title": "x", "paragraphs": [paragraph]}]})


def asked(*answers: tuple[Any, Any], question: Any = "Who?") -> dict[str, Any]:
    told = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": "q1", "question": question, "answers": told}


def read(folder: Path, text: str | bytes) -> Loaded:
    return load(folder, text, reader("squad"))


def test_a_question_has_its_passage_and_its_answers_with_their_places(tmp_path: Path) -> None:
    data = "\ufeff" + written(asked(("William", 8), ("1087", 37)))  # with a byte-order mark
    assert read(tmp_path, data).examples == [
        Question("Who?", PASSAGE, (Answer("William", 8), Answer("1087", 37)), "q1")
    ]


@pytest.mark.parametrize(
    ("stated", "found"), [(8, 8), (9, 8), (20, 21), (99, 21), (-5, 8), (None, 8)]
)
def test_an_answer_in_the_wrong_place_is_found_in_the_nearest(
    tmp_path: Path, stated: Any, found: int
) -> None:
    [example] = read(tmp_path, written(asked(("William", stated)))).examples
    assert isinstance(example, Question)
    assert example.answers == (Answer("William", found),)


def test_an_answer_that_is_not_in_the_text_is_counted_and_kept(tmp_path: Path) -> None:
    data = written(asked(("Harold", 3)), asked(("Harold", 3), ("1066", 3)))
    examples, stats = read(tmp_path, data)
    assert len(examples) == stats.kept == 2
    assert stats.rejected == 0
    assert stats.summary() == "2 examples, 1 with an answer that is not in the text"


def test_what_is_no_question_is_counted_and_rejected(tmp_path: Path) -> None:
    data = written(
        asked(("William", 8)),
        asked(),
        asked(("William", 8), question=" "),
        asked((7, 8)),
        "Who?",
        asked(("\ud800", 3)),
    )
    examples, stats = read(tmp_path, data)
    assert len(examples) == 1
    assert stats.reasons == {"no-answer": 3, "no-question": 2}
    assert "question 2: no-answer: 'Who?'" in stats.faults[0]


@pytest.mark.parametrize("context", ["", None, ["x"], "x" * ((1 << 20) + 1)])
def test_a_passage_that_is_none_or_too_long_is_rejected(tmp_path: Path, context: Any) -> None:
    whole = json.loads(written(asked(("William", 8))))
    whole["data"] += json.loads(written(asked(("x", 0)), context=context))["data"]
    examples, stats = read(tmp_path, json.dumps(whole))
    assert len(examples) == 1
    assert stats.reasons == {"no-passage": 1}


@pytest.mark.parametrize("data", ["", "{", "[" * 100_000, '{"data": 3}', b"\xff\xfe", '{"a": []}'])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, data: str | bytes) -> None:
    with pytest.raises(InputError, match=r"not JSON|no examples"):
        read(tmp_path, data)
