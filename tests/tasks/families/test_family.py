"""What the rest of the room asks of every family."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.tasks.data import DataSet
from polyseme.tasks.families import family_of
from polyseme.tasks.families.classification import Classified, Paired
from polyseme.tasks.families.family import Columns, ExampleFeatures, prepare_sentences
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.task import TaskConfig
from polyseme.tasks.texts import TextReader, WordTuple
from tasks.making import TASKS, config_of, examples_for, task_of


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


class Document:
    """An example of as many sentences as it has."""

    def __init__(self, *sentences: WordTuple) -> None:
        self.sentences = sentences

    def with_words(self, _reader: Any, /) -> "Document":
        return self


class Documents:
    """As much of a family as a data set asks for."""

    def prepare(
        self, examples: Sequence[Document], embeddings: Any, **options: Any
    ) -> ExampleFeatures:
        return prepare_sentences(examples, embeddings, **options)

    def encode(self, examples: Sequence[Document], *, with_gold: bool) -> Columns:
        assert with_gold
        return {"spans": [np.array([[len(s), 1] for s in each.sentences]) for each in examples]}


DOCUMENTS = [
    Document(("ba",)),
    Document(("ba", "no"), ("no",), ("ba", "ba", "no")),
    Document(("no", "ba", "no"), ("ba",)),
]


@pytest.fixture
def documents(models: dict[str, Path], tmp_path: Path) -> DataSet:
    task, _ = task_of(config_of("names, static", models, tmp_path), examples_for("names"))
    family: Any = Documents()
    return DataSet(DOCUMENTS, family, task.module.embeddings, with_gold=True)


def test_an_example_may_have_any_number_of_sentences(documents: DataSet) -> None:
    assert documents.lengths.tolist() == [1, 3, 3]
    batch = documents.batch(np.array([2, 0, 1]))
    assert len(batch) == 3
    # All first sentences, then all second ones, then the third.
    assert batch.features.lengths.tolist() == [3, 1, 2, 1, 1, 3]
    assert batch.example_of.tolist() == [0, 1, 2, 0, 2, 2]
    assert batch["spans"].tolist() == [
        [[3, 1], [1, 1], [0, 0]],
        [[1, 1], [0, 0], [0, 0]],
        [[2, 1], [1, 1], [3, 1]],
    ]


def test_a_shard_of_examples_with_several_sentences_is_as_if_gathered_alone(
    documents: DataSet,
) -> None:
    batch = documents.batch(np.array([1, 0, 2]), step=7)
    for rank, chosen in enumerate([[1, 0], [2]]):
        shard, alone = batch.shard(rank, 2), documents.batch(np.array(chosen))
        assert shard.features.lengths.tolist() == alone.features.lengths.tolist()
        assert shard.example_of.tolist() == alone.example_of.tolist()
        assert torch.equal(shard["spans"], alone["spans"])
        assert (len(shard), shard.step) == (len(alone), 7)


def test_of_examples_with_many_sentences_fewer_are_read_at_once(
    documents: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyseme.tasks.data._PLACES", 10)
    assert [chosen.tolist() for chosen in documents.in_order(64)] == [[1], [2], [0]]


@pytest.mark.parametrize("name", TASKS)
def test_what_a_family_learned_from_its_data_comes_back_from_json(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    config = config_of(name, models, tmp_path)
    family = family_of(config.network).fit(examples_for(name))
    again = family_of(config.network).restore(family.to_json())
    assert again == family
    kind = name.partition(",")[0]
    learns_nothing = kind in ("answers", "choices")
    assert (family == family_of(config.network)) == learns_nothing
    expected = {"answers": 2, "choices": None}.get(kind, 2 if "pairs" in kind else 1)
    assert again.num_texts == expected


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
