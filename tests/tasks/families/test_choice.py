"""Which of several: ranks, odd input, files of choices, and the next sentences of a corpus."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedding.bulk_cases import make_case
from listening import Heard

from polyseme.errors import InputError, StorageError
from polyseme.tasks.data import read_split
from polyseme.tasks.families.choice import Choice, ChoiceConfig, Choices, PredictedChoice
from polyseme.tasks.next_sentence import write_choices
from polyseme.tasks.readers.table import ChoicesConfig
from polyseme.tasks.texts import TextReader
from tasks.cases import prepare_documents
from tasks.readers.making import load, reader


def test_accuracy_and_mean_reciprocal_rank_are_those_worked_out_by_hand() -> None:
    examples = [Choices(("t",), (("a",), ("b",), ("c",)), right) for right in ((1,), (0, 2))]
    shares = ((0.5, 0.3, 0.2), (0.3, 0.2, 0.5))
    found = [PredictedChoice("t", ("a", "b", "c"), share) for share in shares]
    ranks = Choice(ChoiceConfig()).score(examples, found)
    assert ranks.value("accuracy") == 0.5
    assert ranks.value("mrr") == pytest.approx((1 / 2 + 1) / 2)
    assert ranks.tables()["choices"][0]["by chance"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert np.array_equal(ranks.concat([ranks]).ranks, [2, 1, 2, 1])
    assert found[1].as_json()["best"] == 2
    assert found[0].ranking == [0, 1, 2]


@pytest.mark.parametrize("texts", [("a",), ("a", "b"), ("a",) * 258, ("a", "b", "")])
def test_too_few_choices_too_many_and_empty_ones_are_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"This task chooses|no word"):
        list(Choice(ChoiceConfig()).of_texts(texts, TextReader(Path("en"))))


@pytest.mark.parametrize(
    ("label", "right"), [(1, (1,)), ("1", (1,)), ("x", (0,)), ([0, 1], (0, 1))]
)
def test_a_label_is_a_number_a_text_or_a_list(tmp_path: Path, label: Any, right: Any) -> None:
    row = {"text": "t", "choices": ["x", ["y", "z"]], "label": label}
    loaded = load(tmp_path, json.dumps(row), reader("choices"))
    assert loaded.examples == [Choices("t", ("x", ("y", "z")), right)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"label": 2}, "no-label"),
        ({"label": True}, "no-label"),
        ({"label": []}, "no-label"),
        ({"choices": ["x"]}, "no-choices"),
        ({"choices": ["x", ""]}, "no-text"),
        ({"text": None}, "no-text"),
    ],
)
def test_what_is_no_choice_is_counted(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    row = {"text": "t", "choices": ["x", "y"], "label": 0}
    data = f"{json.dumps(row)}\n{json.dumps(row | change)}\n"
    examples, stats = load(tmp_path, data, reader("choices"))
    assert len(examples) == 1
    assert stats.reasons == {reason: 1}


def test_what_is_too_long_to_be_compared_is_counted_and_not_learned_from(tmp_path: Path) -> None:
    rows = [{"text": "t", "choices": ["x", "y"], "label": 0} for _ in range(3)]
    rows[1]["choices"] = ["x", "word " * 200_000]  # a megabyte
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    reader = TextReader(Path("en"))
    examples, stats = read_split(path, ChoicesConfig(), ChoiceConfig(), text_reader=reader)
    assert [each.sentences for each in examples] == [(("t",), ("x",), ("y",))] * 2
    assert stats.reasons == {"too-long": 1}


def test_a_corpus_of_one_document_is_too_little(tmp_path: Path) -> None:
    corpus = make_case(tmp_path / "made").corpus.folder
    with pytest.raises(InputError, match="pairs of sentences"):
        write_choices(corpus, tmp_path / "choices")


def test_the_right_choice_is_the_next_sentence_of_its_document(tmp_path: Path) -> None:
    corpus = prepare_documents(tmp_path / "made", 80)
    heard = Heard()
    counts = write_choices(corpus, tmp_path / "choices", number=40, progress=heard)
    assert counts["train"] == 40
    assert heard.done == heard.total > 40
    documents: dict[str, set[str]] = {}
    for name in counts:
        lines = (tmp_path / "choices" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        for row in map(json.loads, lines):
            right = row["choices"][row["label"]]
            assert len({tuple(each) for each in row["choices"]}) == 4
            assert right[1] == row["text"][1]  # the same document
            assert int(right[3]) == int(row["text"][3]) + 1  # the next line
            documents.setdefault(name, set()).add(right[1])
        assert len(lines) == counts[name]
    assert not documents["train"] & (documents["dev"] | documents["test"])
    assert not documents["dev"] & documents["test"]
    with pytest.raises(StorageError, match=r"has a train\.jsonl already"):
        write_choices(corpus, tmp_path / "choices", number=40)


def test_the_same_seed_draws_the_same_and_no_choice_is_there_twice(tmp_path: Path) -> None:
    # Every document has the same line after its first: it would be right, and wrong, at once.
    line = "The same words are in every text here."
    corpus = prepare_documents(tmp_path / "made", 60, after={1: line})
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_choices(corpus, tmp_path / folder, number=30, seed=seed)
    texts = [(tmp_path / f / "train.jsonl").read_text(encoding="utf-8") for f in ("a", "b", "c")]
    assert texts[0] == texts[1] != texts[2]
    rows = [json.loads(text) for text in texts[0].splitlines()]
    assert any(row["choices"][row["label"]] == line.replace(".", " .").split() for row in rows)
    for row in rows:
        assert len({tuple(each) for each in row["choices"]}) == 4
