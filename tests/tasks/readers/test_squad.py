"""Questions in SQuAD's JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from polyseme.errors import InputError
from polyseme.tasks.families.question_answering import Answer, Question
from polyseme.tasks.readers import Loaded
from tasks.readers.making import load, reader

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
