"""Which of several: ranks, odd input, files of choices, and the next sentences of a corpus."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedding.bulk_cases import make_case

from polyseme.errors import InputError
from polyseme.tasks.families.choice import Choice, ChoiceConfig, Choices, PredictedChoice
from polyseme.tasks.next_sentence import write_choices
from polyseme.tasks.texts import TextReader
from tasks.readers.making import load, reader


def test_accuracy_and_mean_reciprocal_rank_are_those_worked_out_by_hand() -> None:
    examples = [Choices(("t",), (("a",), ("b",), ("c",)), right) for right in ((1,), (0, 2))]
    shares = ((0.5, 0.3, 0.2), (0.3, 0.2, 0.5))
    found = [PredictedChoice("t", ("a", "b", "c"), share) for share in shares]
    ranks = Choice(ChoiceConfig()).score(examples, found)
    assert ranks.value("accuracy") == 0.5
    assert ranks.value("mrr") == pytest.approx((1 / 2 + 1) / 2)
    assert ranks.tables()["choices"][0]["by chance"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert np.array_equal(ranks.followed_by([ranks]).ranks, [2, 1, 2, 1])
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


def test_a_corpus_of_one_document_is_too_little(tmp_path: Path) -> None:
    corpus = make_case(tmp_path / "made").corpus.folder
    with pytest.raises(InputError, match="pairs of sentences"):
        write_choices(corpus, tmp_path / "choices")
