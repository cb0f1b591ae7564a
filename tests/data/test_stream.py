"""The stream of training batches: complete, repeatable, resumable."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from data.making import (
    Document,
    make_corpus,
    numbered_documents,
    read_back,
    sentences_of,
    small_batches,
)
from polyseme.commands.prepare import PrepareConfig
from polyseme.commands.prepare import run as prepare
from polyseme.data.batch import Batch
from polyseme.data.stream import BatchConfig, SentenceStream, held_out
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.data.window import CorpusWindow, read_window
from polyseme.errors import CorpusError
from polyseme.executors import ExecutorConfig
from polyseme.text.corpus import Corpus
from polyseme.text.settings import CorpusConfig

PARTS = [numbered_documents(n, prefix=p) for n, p in [(23, "x"), (9, "y"), (31, "z"), (1, "w")]]
DOCUMENTS = [document for part in PARTS for document in part]
VOCABULARY = VocabularyConfig(min_character_count=1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Four shards in row groups of seven sentences."""
    return make_corpus(tmp_path_factory.mktemp("corpus") / "c", PARTS, row_group=7)


@pytest.fixture(scope="module")
def vocabulary(corpus: Corpus) -> Vocabulary:
    return Vocabulary.of(corpus, VOCABULARY)


def make_stream(
    corpus: Corpus, vocabulary: Vocabulary, seed: int = 1, **values: Any
) -> SentenceStream:
    return SentenceStream(
        corpus, vocabulary, values.pop("config", small_batches()), seed=seed, **values
    )


def first_epoch(stream: SentenceStream) -> Iterator[Batch]:
    for batch, position in stream({}):
        yield batch
        if position["epoch"] == 1:
            return


def contents(batch: Batch) -> list[Any]:
    parts = (batch.words, batch.lengths, batch.ids, batch.char_ids, batch.segments, batch.follows)
    return [None if part is None else part.tolist() for part in parts]


def test_an_epoch_has_every_training_sentence_once_and_no_other(
    corpus: Corpus, vocabulary: Vocabulary
) -> None:
    rows = [
        row
        for b in first_epoch(make_stream(corpus, vocabulary))
        for row in read_back(b, vocabulary)
    ]
    expected = [("<S>", *s, "</S>") for s in sentences_of(DOCUMENTS, held_out=False)]
    assert Counter(rows) == Counter(expected)
    assert rows != expected  # shuffled


def test_held_out_batches_have_every_held_out_sentence_once(
    corpus: Corpus, vocabulary: Vocabulary
) -> None:
    batches = held_out(corpus, vocabulary, small_batches(), limit_words=None)
    rows = [row for batch in batches for row in read_back(batch, vocabulary)]
    expected = [("<S>", *s, "</S>") for s in sentences_of(DOCUMENTS, held_out=True)]
    assert Counter(rows) == Counter(expected)


def test_a_batch_has_the_shapes_it_promises(corpus: Corpus, vocabulary: Vocabulary) -> None:
    for batch in first_epoch(make_stream(corpus, vocabulary)):
        assert batch.words.shape == batch.mask.shape == (len(batch.lengths), batch.lengths.max())
        assert batch.char_ids.shape[0] == len(batch.ids) == batch.words.max() + 1
        assert batch.num_words == batch.mask.sum() <= 30
        assert batch.words[~batch.mask].eq(0).all()
        rows = [tuple(row) for row in batch.char_ids.tolist()]
        assert len(set(rows)) == len(rows)  # each distinct word once


def test_ids_and_characters_are_those_of_the_words(corpus: Corpus, vocabulary: Vocabulary) -> None:
    for batch in first_epoch(make_stream(corpus, vocabulary)):
        words = [row[1:-1] for row in read_back(batch, vocabulary)]
        again = vocabulary.batch(words)
        assert again.ids[again.words].equal(batch.ids[batch.words])
        assert again.char_ids[again.words].equal(batch.char_ids[batch.words])


def test_the_same_seed_gives_the_same_sequence_and_another_another(
    corpus: Corpus, vocabulary: Vocabulary
) -> None:
    runs = [
        [contents(b) for b, _ in islice(make_stream(corpus, vocabulary, seed)({}), 60)]
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_epochs_differ_in_their_order(corpus: Corpus, vocabulary: Vocabulary) -> None:
    stream = make_stream(corpus, vocabulary)
    one = [contents(b) for b in first_epoch(stream)]
    two = [contents(b) for b, _ in islice(stream({"epoch": 1}), len(one))]
    assert one != two


def test_each_window_of_each_epoch_is_shuffled_in_its_own_way(tmp_path: Path) -> None:
    # Two shards alike but for a letter, and one batch from each: only their order can differ.
    parts = [[Document(n, [[f"{n}{s}"] for s in range(40)])] for n in "pq"]
    corpus = make_corpus(tmp_path / "c", parts)
    vocabulary = Vocabulary.of(corpus, VocabularyConfig(min_count=1, min_character_count=1))
    stream = make_stream(corpus, vocabulary, config=BatchConfig(window=1))
    batches = [read_back(batch, vocabulary) for batch, _ in islice(stream({}), 4)]
    orders = {tuple(row[1][1:] for row in batch) for batch in batches}
    assert len(orders) == 4


@pytest.mark.parametrize("pairs", [False, True])
def test_resuming_at_any_position_gives_the_identical_rest(
    corpus: Corpus, vocabulary: Vocabulary, pairs: bool
) -> None:
    whole = list(islice(make_stream(corpus, vocabulary, pairs=pairs)({}), 70))
    assert whole[-1][1]["epoch"] >= 1  # the end of an epoch is among the positions
    for number, (_, position) in enumerate(whole[:-1], start=1):
        expected = whole[number : number + 6]
        rest = islice(make_stream(corpus, vocabulary, pairs=pairs)(position), len(expected))
        assert [(contents(batch), after) for batch, after in rest] == [
            (contents(batch), after) for batch, after in expected
        ]


def test_resuming_reads_one_window_only(
    corpus: Corpus, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = make_stream(corpus, vocabulary)
    position = list(islice(stream({}), 20))[-1][1]
    read: list[int] = []

    def watched(groups: Any, *rest: Any, **values: Any) -> CorpusWindow:
        read.append(len(groups))
        return read_window(groups, *rest, **values)

    monkeypatch.setattr("polyseme.data.stream.read_window", watched)
    next(stream(position))
    assert read == [2]


def test_each_epoch_and_seed_goes_through_the_row_groups_in_another_order(
    corpus: Corpus, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only the sentences of a window are shuffled, but also which of them meet in one."""
    read: list[str] = []

    def watched(groups: Any, *rest: Any, **values: Any) -> CorpusWindow:
        read.extend(map(repr, groups))
        return read_window(groups, *rest, **values)

    monkeypatch.setattr("polyseme.data.stream.read_window", watched)
    orders = []
    for seed in (1, 2):
        stream, before = make_stream(corpus, vocabulary, seed)({}), 0
        while before < 3:
            _, position = next(stream)
            if position["epoch"] > before:
                before += 1
                orders.append(tuple(read))
                read.clear()
    assert len({frozenset(order) for order in orders}) == 1
    assert len(set(orders)) == 6


def test_words_per_epoch_is_the_sum_of_the_lengths(corpus: Corpus, vocabulary: Vocabulary) -> None:
    stream = make_stream(corpus, vocabulary)
    assert stream.words_per_epoch == sum(batch.num_words for batch in first_epoch(stream))


def test_a_sentence_longer_than_a_batch_is_its_own_batch(tmp_path: Path) -> None:
    sentences = [["a"] * 40, ["b"] * 3, ["c"] * 50, ["b"] * 2]
    corpus = make_corpus(tmp_path / "c", [[Document("d", sentences)]])
    stream = make_stream(corpus, Vocabulary.of(corpus, VOCABULARY), config=small_batches(words=10))
    sizes = sorted((b.num_words, len(b.lengths)) for b in first_epoch(stream))
    assert sizes == [(9, 2), (42, 1), (52, 1)]


def test_batches_are_as_full_as_they_can_be(corpus: Corpus, vocabulary: Vocabulary) -> None:
    stream = make_stream(corpus, vocabulary, config=BatchConfig(words=100_000, window=100))
    (only,) = first_epoch(stream)
    assert only.num_words == stream.words_per_epoch
    lengths = only.lengths.tolist()
    assert lengths == sorted(lengths)


def test_a_corpus_with_everything_held_out_is_refused(tmp_path: Path) -> None:
    documents = [Document("d", [["a"]], held_out=True)]
    corpus = make_corpus(tmp_path / "c", [documents])
    vocabulary = Vocabulary.of(make_corpus(tmp_path / "other", PARTS), VOCABULARY)
    with pytest.raises(CorpusError, match="held-out"):
        make_stream(corpus, vocabulary)
    assert len(list(held_out(corpus, vocabulary, small_batches(), limit_words=None))) == 1


def test_a_corpus_with_nothing_held_out_gives_no_held_out_batches(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "c", [[Document("d", [["a", "a"]])]])
    vocabulary = Vocabulary.of(corpus, VOCABULARY)
    assert list(held_out(corpus, vocabulary, small_batches(), limit_words=10)) == []


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_damaged_shard_is_named(tmp_path: Path, damage: str) -> None:
    corpus = make_corpus(tmp_path / "c", PARTS)
    vocabulary = Vocabulary.of(corpus, VOCABULARY)
    if damage == "gone":
        corpus.shards[1].unlink()
    else:
        corpus.shards[1].write_bytes(corpus.shards[1].read_bytes()[:-9])
    with pytest.raises(CorpusError, match="part-00001"):
        next(make_stream(corpus, vocabulary)({}))


def test_limited_held_out_sentences_are_spread_evenly_and_always_the_same(
    corpus: Corpus, vocabulary: Vocabulary
) -> None:
    order = [("<S>", *s, "</S>") for s in sentences_of(DOCUMENTS, held_out=True)]
    total = sum(len(row) for row in order)
    runs = [
        [
            row
            for batch in held_out(corpus, vocabulary, small_batches(), limit_words=total // 3)
            for row in read_back(batch, vocabulary)
        ]
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    positions = sorted(order.index(row) for row in runs[0])
    assert len(positions) == len(order) // 3
    gaps = [b - a for a, b in pairwise(positions)]
    assert set(gaps) <= {3, 4}


def test_a_limit_below_one_sentence_still_gives_one(corpus: Corpus, vocabulary: Vocabulary) -> None:
    (batch,) = held_out(corpus, vocabulary, small_batches(), limit_words=1)
    assert len(batch.lengths) == 1


def test_a_prepared_corpus_streams_as_accounted(tmp_path: Path) -> None:
    lines = [f"word{n % 7} of line {n} ." for n in range(3000)]
    (tmp_path / "in.txt").write_text("\n\n".join(lines), encoding="utf-8")
    settings = CorpusConfig(
        language="en", segmenter="whitespace", layout="lines", held_out=0.1, shard_bytes=1 << 13
    )
    config = PrepareConfig(
        inputs=(str(tmp_path / "in.txt"),),
        out=tmp_path / "c",
        corpus=settings,
        executor=ExecutorConfig(workers=1),
    )
    corpus = prepare(config).corpus
    vocabulary = Vocabulary.of(corpus, VOCABULARY)
    stream = make_stream(corpus, vocabulary, config=BatchConfig())
    training = [row for b in first_epoch(stream) for row in read_back(b, vocabulary)]
    held = held_out(corpus, vocabulary, BatchConfig(), limit_words=None)
    rest = [row for b in held for row in read_back(b, vocabulary)]
    assert stream.words_per_epoch == sum(len(row) for row in training)
    assert Counter(" ".join(row[1:-1]) for row in training + rest) == Counter(lines)
    assert 150 < len(rest) < 450
