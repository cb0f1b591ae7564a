"""What the rest of the room asks of every family."""

from pathlib import Path

import numpy as np
import pytest

from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.tasks.data import DataSet
from polyseme.tasks.families.classification import Classified, Paired
from polyseme.tasks.families.coreference import Document
from polyseme.tasks.families.family import Example
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.task import TaskConfig
from polyseme.tasks.texts import TextReader, WordTuple
from tasks.making import config_of, task_of


class Upper(TextReader):
    """Finds words in a way of its own."""

    def split(self, text: str) -> WordTuple:
        return tuple(text.upper().split())


def test_texts_are_split_and_words_left_as_they_are() -> None:
    split = Upper(None)
    assert Classified("a b", "x").with_words(split) == Classified(("A", "B"), "x")
    assert Classified(("a", "b"), "x", target_index=1).with_words(split) == Classified(
        ("a", "b"), "x", target_index=1
    )
    assert Paired("a b", ("c",), "x").with_words(split) == Paired(("A", "B"), ("c",), "x")
    tagged = Tagged(("a",), ("X",), target_index=0)
    assert tagged.with_words(split) is tagged


DOCUMENTS: list[Example] = [
    Document((("ba",),)),
    Document((("ba", "no"), ("no",), ("ba", "ba", "no")), (((0, 1), (3, 5)), ((1, 2),))),
    Document((("no", "ba", "no"), ("ba",)), (((1, 2), (3, 4)),)),
]


@pytest.fixture
def documents(models: dict[str, Path], tmp_path: Path) -> DataSet:
    return task_of(config_of("documents, static", models, tmp_path), DOCUMENTS)[1]


def test_an_example_may_have_any_number_of_sentences(documents: DataSet) -> None:
    assert documents.lengths.tolist() == [1, 3, 3]
    batch = documents.batch(np.array([2, 0, 1]))
    assert len(batch) == 3
    # All first sentences, then all second ones, then the third.
    assert batch.features.lengths.tolist() == [3, 1, 2, 1, 1, 3]
    assert batch.example_of.tolist() == [0, 1, 2, 0, 2, 2]
    assert batch["mentions"].tolist() == [
        [[1, 2, 1], [3, 4, 1], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 1, 1], [3, 5, 1], [1, 2, 2]],
    ]


def test_of_examples_with_many_sentences_fewer_are_read_at_once(
    documents: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyseme.tasks.data._PLACES", 10)
    assert [chosen.tolist() for chosen in documents.in_order(64)] == [[1], [2], [0]]


def test_a_measure_that_is_not_of_the_family_is_refused_with_those_that_are() -> None:
    values = {
        "data": {"train": "train", "reader": {"kind": "columns"}},
        "embeddings": {"words": {"vectors": {"kind": "new"}, "trained": True}},
        "network": {"kind": "tagging"},
        "measure": "bleu",
    }
    with pytest.raises(ConfigError, match=r"'bleu'.*'tagging': accuracy, f1, macro-f1"):
        build(TaskConfig, values)
    assert build(TaskConfig, {**values, "measure": "macro-f1"}).measured_by == "macro-f1"
