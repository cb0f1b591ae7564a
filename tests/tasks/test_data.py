"""Examples as words, batches, and shares of a data set.

What is told of rows that gave no example.

Windows of long texts.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyseme.config import build
from polyseme.errors import ConfigError, InputError
from polyseme.tasks.data import DataConfig, Split, read_split, subsample, without_dev
from polyseme.tasks.families import NetworkConfig
from polyseme.tasks.families.classification import ClassificationConfig, Classified
from polyseme.tasks.families.family import Example
from polyseme.tasks.families.tagging import TaggingConfig
from polyseme.tasks.texts import ExampleStats, TextReader, choose_windows
from polyseme.text.records import Rejected
from tasks.making import config_of, examples_for, task_of

COLUMNS = "Ada B-PER\nsleeps O\n\nShe O\nsees O\nBob B-PER\n"


def read(path: Path, network: NetworkConfig, kind: str = "columns", **others: Any) -> Split:
    reader = build(DataConfig, {"train": path, "reader": {"kind": kind, **others}}).reader
    return read_split(path, reader, network, text_reader=TextReader(None))


def test_examples_of_the_wrong_family_are_named(tmp_path: Path) -> None:
    path = tmp_path / "train.conll"
    path.write_text(COLUMNS, encoding="utf-8")
    examples, stats = read(path, TaggingConfig())
    assert [example.sentences for example in examples] == [
        (("Ada", "sleeps"),),
        (("She", "sees", "Bob"),),
    ]
    assert stats.examples == 2
    with pytest.raises(ConfigError, match=r"'classification'.*classified.*has tagged ones"):
        read(path, ClassificationConfig())


def test_running_text_needs_to_know_how_words_are_found(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text("text\tlabel\nA fine day\tgood\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"data\.tokenizer_from"):
        read(path, ClassificationConfig(), "table")


def test_an_example_without_a_word_is_counted_and_rejected(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    lines = ['{"text": ["A", "day"], "label": "good"}', '{"text": [], "label": "bad"}']
    path.write_text("\n".join(lines), encoding="utf-8")
    examples, stats = read(path, ClassificationConfig(), "table")
    assert examples == [Classified(("A", "day"), "good")]
    assert stats.read == stats.kept + stats.rejected == 2


def test_subtrees_are_to_learn_from_and_never_to_be_measured_on(tmp_path: Path) -> None:
    path = tmp_path / "trees.txt"
    path.write_text("(3 (2 A) (4 (2 fine) (2 day)))\n", encoding="utf-8")
    config = {"train": path, "reader": {"kind": "trees", "subtrees": True}}
    reader = build(DataConfig, config).reader

    def texts(*, to_learn: bool) -> list[Any]:
        found = read_split(
            path, reader, ClassificationConfig(), text_reader=TextReader(None), to_learn=to_learn
        )
        return [example.sentences[0] for example in found.examples]

    assert texts(to_learn=False) == [("A", "fine", "day")]
    assert ("fine", "day") in texts(to_learn=True)


def numbered(count: int) -> list[Example]:
    return [Classified((str(number),), "x") for number in range(count)]


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_a_smaller_share_is_part_of_a_larger_one_and_as_large_as_asked(count: int) -> None:
    shares = [subsample(numbered(count), share) for share in (0.01, 0.05, 0.25, 1.0)]
    for small, large in pairwise(shares):
        assert set(small) <= set(large)
    assert shares[-1] == numbered(count)
    assert [len(share) for share in shares] == pytest.approx(
        [max(1, count * share) for share in (0.01, 0.05, 0.25, 1.0)], abs=2
    )


def test_without_development_data_every_tenth_example_is_kept_apart() -> None:
    rest, dev = without_dev(numbered(30))
    assert [example.sentences[0] for example in dev] == [("9",), ("19",), ("29",)]
    assert len(rest) == 27
    assert not set(rest) & set(dev)
    with pytest.raises(InputError, match="too few"):
        without_dev(numbered(9))


@pytest.mark.parametrize("name", ["names, static", "pairs, static"])
def test_an_epoch_has_every_example_once_in_an_order_of_its_own(
    name: str, models: dict[str, Path], tmp_path: Path
) -> None:
    _, data = task_of(config_of(name, models, tmp_path), examples_for(name, 23))
    epochs = [data.shuffled(4, np.random.default_rng([1, epoch])) for epoch in (0, 0, 1)]
    flat = [np.concatenate(epoch).tolist() for epoch in epochs]
    assert all(sorted(order) == list(range(23)) for order in flat)
    assert flat[0] == flat[1] != flat[2]
    assert all(len(batch) <= 4 for batch in epochs[0])
    assert sorted(np.concatenate(list(data.in_order(4))).tolist()) == list(range(23))


def test_counts_add_up_and_the_summary_says_why() -> None:
    stats = ExampleStats()
    stats.keep(1)
    stats.keep(3)
    stats.reject(Rejected(7, "no-label", "some text", "in column 'label'"), "train.tsv")
    stats.reject(Rejected(9, "no-label", ""), "train.tsv")
    stats.reject(Rejected(9, "no-text", ""), "train.tsv")
    assert stats.read == stats.kept + stats.rejected == 5
    assert stats.summary() == "4 examples; 3 of 5 rows rejected: 2 no-label, 1 no-text"
    assert stats.faults[0] == "train.tsv, line 7: no-label (in column 'label'): 'some text'"


def test_a_file_full_of_faults_fills_neither_memory_nor_screen() -> None:
    stats = ExampleStats()
    for line in range(1000):
        stats.reject(Rejected(line, "no-text", "x" * 1000), "train.tsv")
    assert stats.rejected == 1000
    assert sum(map(len, stats.faults)) < 4000


WORDS = [f"w{number}" for number in range(100)]


@pytest.mark.parametrize("length", [1, 9, 10, 11, 16, 17, 100])
def test_windows_cover_every_word_and_every_short_span(length: int) -> None:
    found = choose_windows(WORDS[:length], [], size=10, overlap=4, most=99)
    assert found[0][0] == 0
    assert found[-1][1] == length
    assert all(0 < end - begin <= 10 for begin, end in found)
    assert all(after[0] == before[1] - 4 for before, after in pairwise(found))
    for begin in range(length - 3):  # what is no longer than the overlap is whole in one of them
        assert any(first <= begin and begin + 4 <= end for first, end in found)


def test_of_too_many_windows_those_are_read_that_share_rare_words_with_the_question() -> None:
    words = [*WORDS[:50], "Common", *WORDS[50:], "common", "rare"]
    options = {"size": 10, "overlap": 0}
    found = choose_windows(words, ["RARE", "common"], most=2, **options)
    assert found == [(50, 60), (100, 103)]
    assert choose_windows(words, ["rare"], most=1, **options) == [(100, 103)]
    assert choose_windows(words, ["unheard"], most=2, **options) == [(0, 10), (10, 20)]
