"""The n-gram baseline against its formulas, worked out again with plain dictionaries."""

import math
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from text.making import make_config

from data.plain_ngrams import PlainModel, Sentence, make_sentences
from polyseme.data.ngrams import (
    FALLBACK,
    NgramConfig,
    NgramResult,
    held_out_perplexity,
    sentence_log_probabilities,
)
from polyseme.errors import ConfigError, CorpusError
from polyseme.text.corpus import Corpus
from polyseme.text.preprocessing import Preparation
from polyseme.text.shards import ShardWriter


def make_corpus(folder: Path, *shards: list[tuple[Sentence, bool]]) -> Corpus:
    """A corpus of sentences, each with whether it is held out."""
    names = [f"shards/part-{number:05}.parquet" for number in range(len(shards))]
    folder.mkdir(exist_ok=True)
    for name, sentences in zip(names, shards, strict=True):
        with ShardWriter(folder / name, ()) as writer:
            for position, (words, is_held_out) in enumerate(sentences):
                row = ("d", position, is_held_out, " ".join(words), words, [0] * len(words))
                writer.add((f"d:{position}:0", *row))
    preparation = Preparation.of(make_config())
    return Corpus(folder, {"files": dict.fromkeys(names)}, preparation)


def measure(
    training: list[Sentence],
    held_out: list[Sentence],
    vocabulary: list[str],
    *,
    order: int,
    backward: bool = False,
) -> NgramResult:
    """What the baseline says of these sentences."""
    rows = [(words, False) for words in training] + [(words, True) for words in held_out]
    with tempfile.TemporaryDirectory() as name:
        return held_out_perplexity(
            make_corpus(Path(name) / "corpus", rows),
            vocabulary,
            NgramConfig(order=order),
            scratch=Path(name) / "scratch",
            threads=1,
            backward=backward,
        )


sentences = st.lists(st.lists(st.sampled_from("abcdx"), min_size=1, max_size=6), max_size=12)


@settings(max_examples=40, deadline=None)
@given(
    training=sentences,
    held_out=sentences.filter(bool),
    order=st.integers(1, 5),
    vocabulary=st.lists(st.sampled_from("abcde"), unique=True),
    backward=st.booleans(),
)
def test_it_agrees_with_the_formulas(
    training: list[Sentence],
    held_out: list[Sentence],
    order: int,
    vocabulary: list[str],
    backward: bool,
) -> None:
    """Backward, with those of sentences that are read from their end."""
    result = measure(training, held_out, vocabulary, order=order, backward=backward)
    if backward:
        training, held_out = ([words[::-1] for words in each] for each in (training, held_out))
    model = PlainModel(training, vocabulary, order)
    assert result.log_probability == pytest.approx(model.log_probability(held_out), rel=1e-9)
    assert result.predictions == sum(len(words) + 1 for words in held_out)
    assert result.perplexity == pytest.approx(
        math.exp(-model.log_probability(held_out) / result.predictions), rel=1e-9
    )
    of_words = PlainModel(training, vocabulary, 1).log_probability(held_out)
    assert math.log(result.unigram_perplexity) == pytest.approx(
        -of_words / result.predictions, rel=1e-9
    )


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_it_agrees_with_the_formulas_where_discounts_are_estimated(order: int) -> None:
    training, held_out = make_sentences(400, seed=1), make_sentences(40, seed=2)
    vocabulary = [f"w{number}" for number in range(350)]
    result = measure(training, held_out, vocabulary, order=order)
    model = PlainModel(training, vocabulary, order)
    assert result.log_probability == pytest.approx(model.log_probability(held_out), rel=1e-9)
    assert result.discounts[-1] != FALLBACK
    for size, discounts in enumerate(result.discounts, start=1):
        assert discounts == pytest.approx(model.discounts[size])


@settings(max_examples=20, deadline=None)
@given(training=sentences, asked=sentences.filter(bool), order=st.integers(1, 5))
def test_each_word_of_a_sentence_has_the_probability_of_the_formulas(
    training: list[Sentence], asked: list[Sentence], order: int
) -> None:
    rows = [(words, False) for words in training] + [(["d"], True)]  # held out: not counted
    with tempfile.TemporaryDirectory() as name:
        found = sentence_log_probabilities(
            make_corpus(Path(name) / "corpus", rows),
            ["a", "b", "c", "d"],
            asked,
            NgramConfig(order=order),
            scratch=Path(name) / "scratch",
            threads=1,
        )
    model = PlainModel(training, ["a", "b", "c", "d"], order)
    assert [len(values) for values in found] == [len(words) + 1 for words in asked]
    for words, values in zip(asked, found, strict=True):
        expected = [math.log(model.probability(gram)) for gram in model.grams_of(words)]
        assert values == pytest.approx(expected, rel=1e-9)


def test_a_word_of_the_vocabulary_never_trained_on_gets_its_part_of_what_is_left_over() -> None:
    # After the start: a twice, nothing else. The fallback takes 1 off: half is left to order 1,
    # where a and the end each have one word to the left and keep half of that.
    result = measure([["a"], ["a"]], [["b"]], ["a", "b"], order=2)
    first = 1 / 2 * (1 / 2 * 1 / 4)
    end = 1 / 4 + 1 / 2 * 1 / 4  # after b, which was never seen, it is order 1 that speaks
    assert result.log_probability == pytest.approx(math.log(first) + math.log(end))


def test_without_training_sentences_all_classes_are_alike() -> None:
    result = measure([], [["a", "b"], ["z"]], ["a", "b", "c"], order=3)
    assert result.perplexity == pytest.approx(5)  # three words, the unknown one, the end
    assert result.unigram_perplexity == pytest.approx(5)


def test_every_second_sentence_is_counted_over_all_shards(tmp_path: Path) -> None:
    training = (["a", "b"], False)
    held = [(words, True) for words in (["a"], ["b", "b"], ["b", "a"], ["a", "a", "a"], ["b"])]
    mixed = make_corpus(tmp_path / "1", [held[0], training, *held[1:3]], [training, *held[3:]])
    wanted = make_corpus(tmp_path / "2", [training, training, held[0], held[2], held[4]])
    every_second, all_wanted = (
        held_out_perplexity(
            corpus, ["a", "b"], NgramConfig(every=every), scratch=tmp_path / "s", threads=1
        )
        for corpus, every in ((mixed, 2), (wanted, 1))
    )
    assert every_second == all_wanted
    assert every_second.predictions == 2 + 3 + 2


def test_the_result_is_the_same_with_any_number_of_threads(tmp_path: Path) -> None:
    rows = [(words, False) for words in make_sentences(300, seed=5)]
    held = [(words, True) for words in make_sentences(30, seed=6)]
    corpus = make_corpus(tmp_path / "corpus", rows, held)
    words = pa.array([f"w{number}" for number in range(30)] * 2)  # a repeated word counts once
    results = [
        held_out_perplexity(
            corpus, words, NgramConfig(), scratch=tmp_path / "scratch", threads=threads
        )
        for threads in (1, 3)
    ]
    assert results[0] == results[1]
    model = PlainModel([words for words, _ in rows], [f"w{number}" for number in range(30)], 3)
    by_hand = model.log_probability([words for words, _ in held])
    assert results[0].log_probability == pytest.approx(by_hand)


def test_nothing_is_left_in_the_scratch_folder(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", [(["a"], False), (["a"], True)])
    for scratch in (tmp_path / "new" / "scratch", tmp_path / "used"):
        (tmp_path / "used").mkdir(exist_ok=True)
        (tmp_path / "used" / "of others").touch()
        held_out_perplexity(corpus, ["a"], NgramConfig(), scratch=scratch, threads=1)
    assert not (tmp_path / "new" / "scratch").exists()
    assert [path.name for path in (tmp_path / "used").iterdir()] == ["of others"]


def test_a_corpus_with_nothing_held_out_is_refused_and_scratch_is_removed(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", [(["a"], False)])
    with pytest.raises(CorpusError, match="no held-out sentences"):
        held_out_perplexity(corpus, ["a"], NgramConfig(), scratch=tmp_path / "s", threads=1)
    assert not (tmp_path / "s").exists()


def test_memory_that_is_too_little_is_said_to_be(tmp_path: Path) -> None:
    rows = [(words, False) for words in make_sentences(300, seed=7)]
    corpus = make_corpus(tmp_path / "corpus", [*rows, (["w1"], True)])
    config = NgramConfig(memory="1MB")
    with pytest.raises(ConfigError, match="memory = '1MB' is too little"):
        held_out_perplexity(corpus, ["w1"], config, scratch=tmp_path / "s", threads=1)
    assert not (tmp_path / "s").exists()


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", [(["a"], False)], [(["a"], True)])
    corpus.shards[1].unlink()
    with pytest.raises(CorpusError, match=r"cannot be read.*part-00001\.parquet"):
        held_out_perplexity(corpus, ["a"], NgramConfig(), scratch=tmp_path / "s", threads=1)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("values", [{"order": 0}, {"memory": "lots"}, {"every": 0}])
def test_settings_that_cannot_work_are_refused(values: dict[str, int | str]) -> None:
    with pytest.raises(ValidationError):
        NgramConfig.model_validate(values)
