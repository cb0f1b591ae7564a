"""The stream of training batches: complete, repeatable, resumable.

Pairs of sentences: does the second follow the first, and is it said so?

A thread that works ahead: same items, same errors, and it ends.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice, pairwise
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
from polyseme.data.stream import (
    BatchConfig,
    CorpusWindow,
    SentenceStream,
    held_out,
    prefetch,
    read_window,
)
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
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
    corpus: Corpus, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    batches = held_out(corpus, vocabulary, small_batches(), limit_words=None)
    rows = [row for batch in batches for row in read_back(batch, vocabulary)]
    expected = [("<S>", *s, "</S>") for s in sentences_of(DOCUMENTS, held_out=True)]
    assert Counter(rows) == Counter(expected)
    (batch,) = held_out(corpus, vocabulary, small_batches(), limit_words=1)
    assert len(batch.lengths) == 1
    none = make_corpus(tmp_path / "c", [[Document("d", [["a", "a"]])]])
    assert list(held_out(none, vocabulary, small_batches(), limit_words=10)) == []


def test_a_batch_has_the_shapes_ids_and_characters_of_its_words(
    corpus: Corpus, vocabulary: Vocabulary
) -> None:
    for batch in first_epoch(make_stream(corpus, vocabulary)):
        assert batch.words.shape == batch.mask.shape == (len(batch.lengths), batch.lengths.max())
        assert batch.char_ids.shape[0] == len(batch.ids) == batch.words.max() + 1
        assert batch.num_words == batch.mask.sum() <= 30
        assert batch.words[~batch.mask].eq(0).all()
        rows = [tuple(row) for row in batch.char_ids.tolist()]
        assert len(set(rows)) == len(rows)  # each distinct word once
        again = vocabulary.batch([row[1:-1] for row in read_back(batch, vocabulary)])
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


def test_a_sentence_longer_than_a_batch_is_its_own_batch(tmp_path: Path) -> None:
    sentences = [["a"] * 40, ["b"] * 3, ["c"] * 50, ["b"] * 2]
    corpus = make_corpus(tmp_path / "c", [[Document("d", sentences)]])
    stream = make_stream(corpus, Vocabulary.of(corpus, VOCABULARY), config=small_batches(words=10))
    sizes = sorted((b.num_words, len(b.lengths)) for b in first_epoch(stream))
    assert sizes == [(9, 2), (42, 1), (52, 1)]


def test_batches_are_as_full_as_they_can_be(corpus: Corpus, vocabulary: Vocabulary) -> None:
    stream = make_stream(corpus, vocabulary, config=BatchConfig(words=100_000, window=100))
    (only,) = first_epoch(stream)
    assert (
        only.num_words == stream.words_per_epoch == make_stream(corpus, vocabulary).words_per_epoch
    )
    lengths = only.lengths.tolist()
    assert lengths == sorted(lengths)


def test_a_corpus_with_everything_held_out_is_refused(tmp_path: Path) -> None:
    documents = [Document("d", [["a"]], held_out=True)]
    corpus = make_corpus(tmp_path / "c", [documents])
    vocabulary = Vocabulary.of(make_corpus(tmp_path / "other", PARTS), VOCABULARY)
    with pytest.raises(CorpusError, match="held-out"):
        make_stream(corpus, vocabulary)
    assert len(list(held_out(corpus, vocabulary, small_batches(), limit_words=None))) == 1


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


VOCABULARY_PAIRS = VocabularyConfig(min_character_count=1, min_count=1)
Row = tuple[str, str, int]


def document(name: str, sentences: int, *, is_held_out: bool = False) -> Document:
    """Each sentence begins with a word that names its document and position: d3.0, d3.1, ..."""
    written = [[f"{name}.{position}", *["w"] * (position % 3)] for position in range(sentences)]
    return Document(name, written, is_held_out)


def pairs_of(batch: Batch, vocabulary: Vocabulary) -> list[Row]:
    """The names of both sentences and the label, after a look at special tokens and segments."""
    assert batch.segments is not None
    assert batch.follows is not None
    rows = []
    segments = batch.segments.tolist()
    for number, words in enumerate(read_back(batch, vocabulary)):
        middle = words.index("</S>")
        assert words[0] == "<S>"
        assert words[-1] == "</S>"
        assert words.count("</S>") == 2
        second = len(words) - middle - 1
        padding = batch.words.shape[1] - len(words)
        assert segments[number] == [0] * (middle + 1) + [1] * second + [0] * padding
        rows.append((words[1], words[middle + 1], int(batch.follows[number])))
    return rows


def one_epoch(
    corpus_pairs: Corpus, vocabulary: Vocabulary | None = None, seed: int = 1, window: int = 4
) -> list[Row]:
    vocabulary = vocabulary or Vocabulary.of(corpus_pairs, VOCABULARY_PAIRS)
    config = BatchConfig(words=200, window=window)
    rows: list[Row] = []
    for batch, position in SentenceStream(corpus_pairs, vocabulary, config, seed=seed, pairs=True)(
        {}
    ):
        assert batch.num_words <= 200
        rows += pairs_of(batch, vocabulary)
        if position["epoch"]:
            break
    return rows


def successor(name: str) -> str:
    head, _, position = name.rpartition(".")
    return f"{head}.{int(position) + 1}"


@pytest.fixture
def corpus_pairs(tmp_path: Path) -> Corpus:
    parts = [
        [document(f"{part}d{n}", n, is_held_out=n % 5 == 0) for n in range(1, 40)]
        for part in "pqrs"
    ]
    return make_corpus(tmp_path / "c", parts, row_group=150)


def test_each_training_sentence_is_first_once_and_the_label_says_if_the_second_follows(
    corpus_pairs: Corpus, tmp_path: Path
) -> None:
    rows = one_epoch(corpus_pairs)
    expected = [f"{p}d{n}.{s}" for p in "pqrs" for n in range(1, 40) if n % 5 for s in range(n)]
    assert sorted(first for first, _, _ in rows) == sorted(expected)
    assert {label for _, _, label in rows} == {0, 1}
    for first, second, label in rows:
        assert label == (second == successor(first))
        assert label or first.rpartition(".")[0] != second.rpartition(".")[0]
        assert int(second.partition("d")[2].partition(".")[0]) % 5  # none that is held out
    alone = one_epoch(make_corpus(tmp_path / "one", [[document("d0", 60)]]))
    assert len(alone) == 60
    assert all(label == (second == successor(first)) for first, second, label in alone)


def test_about_half_of_those_with_a_successor_keep_it(corpus_pairs: Corpus) -> None:
    rows = one_epoch(corpus_pairs, window=100)
    names = {first for first, _, _ in rows}
    kept = [label for first, _, label in rows if successor(first) in names]
    assert 0.45 < sum(kept) / len(kept) < 0.52  # some successors lie in the next row group


def test_random_partners_are_drawn_evenly_from_all_other_documents(tmp_path: Path) -> None:
    # One sentence each, so nothing has a successor and every pair is random.
    corpus_pairs = make_corpus(tmp_path / "c", [[document(f"d{n}", 1) for n in range(4)]])
    vocabulary = Vocabulary.of(corpus_pairs, VOCABULARY_PAIRS)
    drawn: dict[tuple[str, str], int] = {}
    for seed in range(150):
        for first, second, _ in one_epoch(corpus_pairs, vocabulary, seed):
            drawn[first, second] = drawn.get((first, second), 0) + 1
    assert len(drawn) == 12
    assert all(27 < number < 73 for number in drawn.values())  # 50 expected, 6 the deviation


def test_documents_of_one_name_in_two_row_groups_are_not_neighbours(tmp_path: Path) -> None:
    parts = [[document("d0", 1), document("e0", 1)], [document("d0", 2), document("f0", 1)]]
    corpus_pairs = make_corpus(tmp_path / "c", parts, row_group=1)
    for seed in range(20):
        assert all(label == 0 for _, _, label in one_epoch(corpus_pairs, seed=seed))


def test_held_out_pairs_are_always_the_same(corpus_pairs: Corpus) -> None:
    vocabulary = Vocabulary.of(corpus_pairs, VocabularyConfig(min_character_count=1))
    config = BatchConfig(words=200)
    runs = [
        [
            row
            for batch in held_out(corpus_pairs, vocabulary, config, limit_words=limit, pairs=True)
            for row in pairs_of(batch, vocabulary)
        ]
        for limit in (None, None, 600)
    ]
    assert runs[0] == runs[1]
    assert 0 < len(runs[2]) < len(runs[0])
    for first, second, label in runs[0]:
        assert label == (second == successor(first))


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "batches-ahead"]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    assert not threads()
    yield
    assert not threads()


def test_items_come_complete_and_in_order() -> None:
    assert list(prefetch(iter(range(100)), depth=3)) == list(range(100))
    assert list(prefetch(iter([]))) == []


def test_an_error_comes_after_the_items_before_it() -> None:
    def failing() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("the third")

    items = prefetch(failing())
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(items)


@pytest.mark.parametrize("depth", [1, 4])
def test_closing_ends_the_thread_and_closes_the_stream(depth: int) -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            yield from count()
        finally:
            closed.set()

    for taken in range(6):
        closed.clear()
        items = prefetch(endless(), depth)
        assert list(islice(items, taken)) == list(range(taken))
        items.close()  # type: ignore[attr-defined]
        assert closed.is_set() == (taken > 0)  # never begun, nothing to close


def test_no_more_than_depth_items_are_made_beforehand() -> None:
    made = []
    waits = threading.Event()

    def watched() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            if number == 4:
                waits.set()
            yield number

    items = prefetch(watched(), depth=3)
    assert next(items) == 0
    assert waits.wait(10)  # one taken, three ready, one in hand
    threading.Event().wait(0.05)
    assert made == [0, 1, 2, 3, 4]
    items.close()  # type: ignore[attr-defined]


def test_work_goes_on_while_the_consumer_is_busy() -> None:
    second = threading.Event()

    def stream() -> Iterator[int]:
        yield 1
        second.set()
        yield 2

    items = prefetch(stream())
    assert next(items) == 1
    assert second.wait(10)  # without asking for it
    assert list(items) == [2]
