"""What people write, as examples for a task."""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from embedding.bulk_cases import Case, make_case
from slack import allowed

from polyseme.config import build
from polyseme.errors import ConfigError, InputError, ModelError
from polyseme.progress import NullProgress
from polyseme.tasks.families.classification import Classified, Paired
from polyseme.tasks.families.family import Example
from polyseme.tasks.families.labels import LabelNetwork
from polyseme.tasks.families.seq2seq import Translated
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.prediction import label_file
from polyseme.tasks.task import Task, TaskConfig


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(tmp_path_factory.mktemp("prediction"))


def make_task(case: Case, examples: list[Example], network: Any, **embeddings: Any) -> Task:
    """An untrained task: only what it is asked matters here."""
    values = {
        "data": {"train": "train", "reader": {"kind": "columns"}},
        "embeddings": {
            "model": {"kind": "frozen", "model": case.model, "cached": False},
            **embeddings,
        },
        "network": {**network, "context": {"dim": 4}},
    }
    torch.manual_seed(1)
    task = Task.new(build(TaskConfig, values), examples, ["word1", "w"])
    task.module.eval()
    return task


ROLES: list[Example] = [Tagged(("word1", "word2"), ("B-V", "O"), 0)]
TEXTS: list[Example] = [Classified(("word1",), "a"), Classified(("word2",), "b")]
PAIRS: list[Example] = [Paired(("word1",), ("word2",), label) for label in ("same", "other")]


def test_each_sentence_of_a_text_is_tagged_and_a_text_is_classified_whole(case: Case) -> None:
    text = "word1 word2 . Word3 word4 ."
    tagger = make_task(case, ROLES, {"kind": "tagging"})
    assert [found.words for found in tagger.predict(text)] == [
        ("word1", "word2", "."),
        ("Word3", "word4", "."),
    ]
    classifier = make_task(case, TEXTS, {"kind": "classification"})
    [found] = classifier.predict(text)
    assert found.texts == ("word1 word2 . Word3 word4 .",)
    assert found.label in ("a", "b")
    assert found.as_json() == {"texts": list(found.texts), "label": found.label}


def test_probabilities_come_with_what_is_found_and_change_nothing_else(case: Case) -> None:
    texts = ["word1 word2 .", "word3"]
    tagger = make_task(case, ROLES, {"kind": "tagging"})
    for found, plain in zip(
        tagger.predict(texts, probabilities=True), tagger.predict(texts), strict=True
    ):
        # One of two labels without a rule between them: the one chosen is the more probable.
        assert len(found.probabilities) == len(found.words)
        assert all(0.5 <= share <= 1 for share in found.probabilities)
        assert replace(found, probabilities=None) == plain
        assert found.as_json() == {**plain.as_json(), "probabilities": list(found.probabilities)}
        for label, share in zip(found.labels[:2], found.probabilities[:2], strict=True):
            assert f"/{label} {share:.2f}" in repr(found)
    for examples, kind, names in ((TEXTS, "classification", "ab"), (PAIRS, "pairs", "os")):
        task = make_task(case, examples, {"kind": kind})
        [found] = task.predict([" ".join(texts)] if kind != "pairs" else texts, probabilities=True)
        assert sorted(name[0] for name in found.probabilities) == sorted(names)
        assert sum(found.probabilities.values()) == pytest.approx(1)
        assert next(iter(found.probabilities)) == found.label


def test_probabilities_are_those_of_the_scores_and_the_same_alone(case: Case) -> None:
    classifier = make_task(case, TEXTS, {"kind": "classification"})
    network = classifier.module.network
    assert isinstance(network, LabelNetwork)
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3)
    texts = ["word1 word2", "word3 word4 word5", "word6"]
    together = classifier.predict(texts, probabilities=True)
    for found, example in zip(together, classifier.examples_of(texts), strict=True):
        data = classifier.data([example])
        alone = classifier.decode(data, probabilities=True)[0].as_json()["probabilities"]
        batch = data.batch(np.array([0]))
        inputs = classifier.module.embeddings(batch.features)
        scores = network.scores(inputs, batch)[0].tolist()
        top = max(scores)
        expected = [math.exp(score - top) for score in scores]
        for name, share in zip(("a", "b"), expected, strict=True):
            assert found.probabilities[name] == pytest.approx(share / sum(expected), abs=1e-6)
            assert alone[name] == pytest.approx(found.probabilities[name], abs=1e-5)


def test_a_task_without_probabilities_says_so(case: Case) -> None:
    writer = make_task(
        case, [Translated(("word1",), ("word2",))], {"kind": "seq2seq", "decoder": {"dim": 4}}
    )
    with pytest.raises(ConfigError, match=r"'seq2seq' has no probabilities.*Tagging"):
        writer.predict("word1", probabilities=True)


@pytest.mark.parametrize("text", ["word1 *word2* word3", "word1 * word2 * word3"])
def test_the_marked_word_is_found_and_the_marks_are_gone(case: Case, text: str) -> None:
    roles = make_task(case, ROLES, {"kind": "tagging", "has_target": True})
    [example] = roles.examples_of([text])
    assert example == Tagged(("word1", "word2", "word3"), ("O",) * 3, 1)
    with pytest.raises(InputError, match="Put asterisks around it"):
        list(roles.examples_of(["word1 word2"]))


def test_two_texts_make_a_pair_and_one_does_not(case: Case) -> None:
    pairs = make_task(case, PAIRS, {"kind": "pairs"})
    [found] = pairs.predict(["word1 word2", "word3"])
    assert found.texts == ("word1 word2", "word3")
    assert found.label in ("same", "other")
    with pytest.raises(InputError, match="3 cannot be divided"):
        pairs.predict(["word1", "word2", "word3"])


def test_a_pair_may_be_given_as_such_to_a_task_on_pairs_only(case: Case) -> None:
    pairs = make_task(case, PAIRS, {"kind": "pairs"})
    assert pairs.predict([("word1 word2", "word3")]) == pairs.predict(["word1 word2", "word3"])
    with pytest.raises(InputError, match="single texts"):
        make_task(case, TEXTS, {"kind": "classification"}).predict([("word1", "word2")])


def test_a_line_without_a_tab_is_counted(case: Case, tmp_path: Path) -> None:
    pairs = make_task(case, PAIRS, {"kind": "pairs"})
    texts, out = tmp_path / "texts.txt", tmp_path / "labels.jsonl"
    texts.write_text("word1\tword2\nword3\n", encoding="utf-8")
    stats = label_file(pairs, texts, out, progress=NullProgress())
    assert (stats.read, stats.kept, stats.rejected) == (2, 1, 1)
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1


def test_labels_at_characters_are_found_for_characters(case: Case) -> None:
    character_labels = {"tokenizer_from": case.model}
    tagger = make_task(case, ROLES, {"kind": "tagging"}, character_labels=character_labels)
    [found] = tagger.predict("word1")
    assert found.words == tuple("word1")
    assert found.labels is not None
    assert len(found.labels) == 5


def line_of(size: int) -> str:
    return ("word1 word2 " * (size // 12 + 1))[:size]


def test_a_sentence_that_a_corpus_would_cut_is_cut_alike(case: Case) -> None:
    tagger = make_task(case, ROLES, {"kind": "tagging"})
    found = tagger.predict(line_of(12_000))
    assert [len(each.words) for each in found] == [250] * 8
    assert [word for each in found for word in each.words] == ["word1", "word2"] * 1_000


def test_a_long_line_takes_time_in_proportion(case: Case) -> None:
    tagger = make_task(case, ROLES, {"kind": "tagging"})

    def seconds(size: int) -> float:
        started = time.process_time()
        assert tagger.predict(line_of(size))
        return time.process_time() - started

    seconds(1_000)
    half = min(seconds(1 << 17) for _ in range(2))
    assert seconds(1 << 18) < 4 * half
    assert half < allowed(5)


@pytest.mark.parametrize(
    ("examples", "kind", "size"),
    [(ROLES, "tagging", 2 << 20), (TEXTS, "classification", 1 << 19), (PAIRS, "pairs", 1 << 16)],
)
def test_a_text_that_is_too_long_is_rejected_and_counted(
    case: Case, examples: list[Example], kind: str, size: int, tmp_path: Path
) -> None:
    labeller = make_task(case, examples, {"kind": kind})
    tab = "\tword1" if kind == "pairs" else ""
    lines = [f"word1{tab}", f"{line_of(size)}{tab}", f"word2{tab}"]
    (tmp_path / "texts").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    stats = label_file(labeller, tmp_path / "texts", out, progress=NullProgress())
    assert (stats.read, stats.kept, stats.rejected) == (3, 2, 1)
    assert "labelled at once" in stats.faults[0]


@pytest.mark.parametrize("value", [1e38, -1e38, float("nan"), float("inf")])
def test_scores_that_are_no_numbers_give_an_error_and_no_labels(case: Case, value: float) -> None:
    for examples, kind in ((ROLES, "tagging"), (TEXTS, "classification")):
        task = make_task(case, examples, {"kind": kind})
        last = list(task.module.network.parameters())
        with torch.no_grad():
            for weight in last:
                weight.fill_(value)
        with pytest.raises(ModelError, match="not finite"):
            task.decode(task.data(examples))


@pytest.mark.parametrize("value", [1e38, -1e38, 1e9, float("nan"), float("-inf")])
def test_no_poisoned_weight_of_a_task_is_loaded(
    case: Case, value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As someone else would: our own way of writing refuses what is not finite.
    monkeypatch.setattr(torch.Tensor, "isfinite", lambda _: torch.ones(1, dtype=torch.bool))
    task = make_task(case, ROLES, {"kind": "tagging"})
    for name, weight in task.module.state_dict().items():
        with torch.no_grad():
            before = weight.clone()
            weight.view(-1)[0] = value
        task.save(tmp_path / "task")
        with pytest.raises(ModelError, match=f"{name} has values"):
            Task.load(tmp_path / "task")
        with torch.no_grad():
            weight.copy_(before)
    task.save(tmp_path / "task")
    assert Task.load(tmp_path / "task").family == task.family
