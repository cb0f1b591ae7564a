"""Spans that answer questions: gold words, windows, pointers, and odd input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polyseme.config import build
from polyseme.errors import InputError
from polyseme.tasks.families.question_answering import (
    Answer,
    FoundSpan,
    PredictedAnswer,
    Question,
    QuestionAnswering,
    QuestionAnsweringConfig,
    _log_p,
)
from polyseme.tasks.task import Task, TaskConfig
from polyseme.tasks.texts import TextReader

PASSAGE = "In 1066, William (the Conqueror) won at Hastings; he died in 1087."


def question(passage: str, answer: str, *, at_characters: bool = False) -> Question:
    reader = TextReader(Path("en"), at_characters=at_characters)
    answers = (Answer(answer, passage.find(answer)),)
    return Question("Who won?", passage, answers).with_words(reader)


def task_of(*examples: Question, **network: Any) -> Task:
    """Untrained: what it finds is chance, and must still be a span."""
    values = {
        "data": {"train": "x", "reader": {"kind": "squad"}, "tokenizer_from": "en"},
        "embeddings": {"words": {"vectors": {"kind": "new", "dim": 8}, "trained": True}},
        "network": {"kind": "question_answering", "context": {"dim": 8}, **network},
    }
    torch.manual_seed(1)
    words = [word for example in examples for part in example.sentences for word in part]
    return Task.new(build(TaskConfig, values), list(examples), words)


@pytest.fixture(scope="module")
def task() -> Task:
    return task_of(question(PASSAGE, "William"), window=6, overlap=2, max_answer=3, max_windows=4)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("William", ["William"]),
        ("Conqueror) won", ["Conqueror", ")", "won"]),
        ("illia", ["William"]),  # a part of a word: the word
        (" 1066, ", ["1066", ","]),
    ],
)
def test_the_gold_words_are_those_that_the_answer_touches(answer: str, words: list[str]) -> None:
    example = question(PASSAGE, answer)
    assert example.gold is not None
    first, end = example.gold
    assert list(example.words[first:end]) == words
    covered = PASSAGE[example.starts[first] : example.stops[end - 1]]
    assert answer.strip() in covered


def test_an_answer_that_is_not_in_the_passage_has_no_gold() -> None:
    assert question(PASSAGE, "Harold").gold is None
    assert Question("Who", "x", (Answer("x", 0),)).gold is None
    with pytest.raises(InputError, match="None of the answers to 1 questions"):
        QuestionAnswering(QuestionAnsweringConfig()).fit([question(PASSAGE, "Harold")])


def test_characters_may_be_the_words() -> None:
    example = question(PASSAGE, "illia", at_characters=True)
    assert example.gold is not None
    assert "".join(example.words[slice(*example.gold)]) == "illia"


def test_places_are_those_of_the_text_as_it_was_given() -> None:
    passage = "Le cafe\u0301 de\tPierre"  # an accent by itself, and a tab
    example = question(passage, "Pierre")
    spans = zip(example.starts, example.stops, strict=True)
    assert [passage[a:b] for a, b in spans] == ["Le", "cafe\u0301", "de", "Pierre"]


def test_gold_is_counted_in_each_window_that_has_it_whole() -> None:
    config = QuestionAnsweringConfig(window=6, overlap=2)
    example = question(" ".join("abcdefghij"), "e f")
    found = QuestionAnswering(config).encode([example], with_gold=True)
    assert np.array_equal(found["gold"][0], [[5, 6], [1, 2]])  # windows a-f and e-j
    example = question(" ".join("abcdefghij"), "d e f g")  # in neither of them
    assert not np.any(QuestionAnswering(config).encode([example], with_gold=True)["gold"][0])


def test_a_question_without_gold_loses_nothing(task: Task) -> None:
    known, unknown = question(PASSAGE, "William"), question(PASSAGE, "Harold")
    data = type(task.data([known]))(
        [known, unknown], task.family, task.module.embeddings, with_gold=True
    )
    batch = data.batch(np.arange(2))
    losses = task.module.network.losses(task.module.embeddings(batch.features), batch)
    assert losses[0] > 0
    assert losses[1] == 0
    torch.autograd.backward(losses.sum())
    gradients = [p.grad for p in task.module.network.parameters() if p.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_probabilities_add_up_to_one_over_all_windows_of_a_passage() -> None:
    torch.manual_seed(2)
    scores, owner = 9 * torch.randn(5, 4), torch.tensor([0, 1, 2, 1, 1])
    mask = torch.arange(4) < torch.tensor([4, 2, 1, 3, 4])[:, None]
    found = _log_p(scores, mask, owner, 3)
    for example in range(3):
        alone = scores[owner == example][mask[owner == example]]
        expected = alone.log_softmax(dim=0)
        assert torch.allclose(found[owner == example][mask[owner == example]], expected, atol=1e-5)
    assert (found[~mask] == -torch.inf).all()


def test_the_span_found_is_the_best_of_all_that_are_short_enough(task: Task) -> None:
    """All pairs of words are tried, one by one."""
    example = question(PASSAGE, "William")
    task.module.eval()
    batch = task.data([example]).batch(np.arange(1))
    with torch.no_grad():
        starts, ends, mask = task.module.network.scores(  # type: ignore[operator]
            task.module.embeddings(batch.features), batch
        )
    first, last = starts[mask].log_softmax(0), ends[mask].log_softmax(0)
    places = [(row, place) for row, place in mask.nonzero().tolist()]
    tried = {
        (row, place, other): float((first[a] + last[b]).exp())
        for a, (row, place) in enumerate(places)
        for b, (same, other) in enumerate(places)
        if row == same and 0 <= other - place < 3
    }
    best = max(tried, key=lambda key: tried[key])
    [found] = task.module.decode(batch)
    assert isinstance(found, FoundSpan)
    assert (found.window, found.first, found.last) == best
    assert found.probability == pytest.approx(tried[best], rel=1e-4)


@pytest.mark.parametrize(
    ("asked", "passage"),
    [
        ("Who?", "x"),
        ("Who?", "\t ... \n"),
        ("who " * 3000, "One word."),
        ("Who?", "e\u0301" * 300),
        ("Who?", "no spaces" * 2000),
        ("\U0001f600?", "\U0001f600 \u202e \x07 x"),
    ],
)
def test_answers_to_odd_questions_never_leave_the_passage(
    task: Task, asked: str, passage: str
) -> None:
    [found] = task.predict([(asked, passage)])
    assert isinstance(found, PredictedAnswer)
    assert 0 <= found.start < found.stop <= len(passage)
    assert found.answer == passage[found.start : found.stop]
    assert found.answer.strip()
    assert 0 < found.probability <= 1


def test_a_long_passage_is_read_in_a_few_windows(task: Task) -> None:
    rest = "water flows on and on. "
    passage = rest * 2_000 + "William won at Hastings."
    example = Question("Who won at Hastings?", passage).with_words(TextReader(Path("en")))
    family = task.family
    assert isinstance(family, QuestionAnswering)
    windows = family.windows(example)
    assert len(windows) == 4  # max_windows
    assert any("William" in example.words[begin:end] for begin, end in windows)
    [found] = task.predict([("Who won at Hastings?", passage)])
    assert 0 <= found.start < found.stop <= len(passage)
    with pytest.raises(InputError, match="1,048,577 characters"):
        task.predict([("Who?", "x" * ((1 << 20) + 1))])


@pytest.mark.parametrize(("asked", "passage"), [("", "x"), ("Who?", ""), ("Who?", " \n ")])
def test_an_empty_question_or_passage_is_refused(task: Task, asked: str, passage: str) -> None:
    with pytest.raises(InputError, match="There is no word"):
        task.predict([(asked, passage)])


def test_an_answer_is_shown_in_its_surroundings_and_written_with_its_places() -> None:
    found = PredictedAnswer("Who <b> won ?", "<i> William won", 4, 11, 0.5, "q1")
    assert found.as_json() == {
        "id": "q1",
        "question": "Who <b> won ?",
        "answer": "William",
        "start": 4,
        "stop": 11,
        "probability": 0.5,
    }
    assert "<i>" not in found._repr_html_()
    assert "William  0.50  characters 4-11" in str(found.__rich__())
    assert f"William {found.probability:.2f}" in repr(found)
