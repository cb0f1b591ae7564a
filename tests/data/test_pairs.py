"""Pairs of sentences: does the second follow the first, and is it said so?"""

from pathlib import Path

import pytest

from data.making import Document, make_corpus, read_back
from polyseme.data.batch import Batch
from polyseme.data.stream import BatchConfig, SentenceStream, held_out
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.text.corpus import Corpus

VOCABULARY = VocabularyConfig(min_character_count=1, min_count=1)
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


def one_epoch(corpus: Corpus, seed: int = 1, window: int = 4) -> list[Row]:
    vocabulary = Vocabulary.of(corpus, VOCABULARY)
    config = BatchConfig(words=200, window=window)
    rows: list[Row] = []
    for batch, position in SentenceStream(corpus, vocabulary, config, seed=seed, pairs=True)({}):
        assert batch.num_words <= 200
        rows += pairs_of(batch, vocabulary)
        if position["epoch"]:
            break
    return rows


def successor(name: str) -> str:
    head, _, position = name.rpartition(".")
    return f"{head}.{int(position) + 1}"


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    parts = [
        [document(f"{part}d{n}", n, is_held_out=n % 5 == 0) for n in range(1, 40)]
        for part in "pqrs"
    ]
    return make_corpus(tmp_path / "c", parts, row_group=150)


def test_the_label_says_whether_the_second_sentence_follows(corpus: Corpus) -> None:
    rows = one_epoch(corpus)
    assert {label for _, _, label in rows} == {0, 1}
    for first, second, label in rows:
        assert label == (second == successor(first))


def test_a_sentence_that_does_not_follow_is_of_another_document(corpus: Corpus) -> None:
    for first, second, label in one_epoch(corpus):
        if not label:
            assert first.rpartition(".")[0] != second.rpartition(".")[0]


def test_each_training_sentence_is_first_once(corpus: Corpus) -> None:
    firsts = [first for first, _, _ in one_epoch(corpus)]
    expected = [f"{p}d{n}.{s}" for p in "pqrs" for n in range(1, 40) if n % 5 for s in range(n)]
    assert sorted(firsts) == sorted(expected)


def test_no_held_out_sentence_is_second(corpus: Corpus) -> None:
    for _, second, _ in one_epoch(corpus):
        assert int(second.partition("d")[2].partition(".")[0]) % 5


def test_about_half_of_those_with_a_successor_keep_it(corpus: Corpus) -> None:
    rows = one_epoch(corpus, window=100)
    names = {first for first, _, _ in rows}
    kept = [label for first, _, label in rows if successor(first) in names]
    assert 0.45 < sum(kept) / len(kept) < 0.52  # some successors lie in the next row group


def test_random_partners_are_drawn_evenly_from_all_other_documents(tmp_path: Path) -> None:
    # One sentence each, so nothing has a successor and every pair is random.
    corpus = make_corpus(tmp_path / "c", [[document(f"d{n}", 1) for n in range(4)]])
    drawn: dict[tuple[str, str], int] = {}
    for seed in range(150):
        for first, second, _ in one_epoch(corpus, seed):
            drawn[first, second] = drawn.get((first, second), 0) + 1
    assert len(drawn) == 12
    assert all(27 < number < 73 for number in drawn.values())  # 50 expected, 6 the deviation


def test_with_one_document_the_label_still_tells_the_truth(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "c", [[document("d0", 60)]])
    rows = one_epoch(corpus)
    assert len(rows) == 60
    for first, second, label in rows:
        assert label == (second == successor(first))


def test_documents_of_one_name_in_two_row_groups_are_not_neighbours(tmp_path: Path) -> None:
    parts = [[document("d0", 1), document("e0", 1)], [document("d0", 2), document("f0", 1)]]
    corpus = make_corpus(tmp_path / "c", parts, row_group=1)
    assert all(label == 0 for seed in range(20) for _, _, label in one_epoch(corpus, seed))


def test_held_out_pairs_are_always_the_same(corpus: Corpus) -> None:
    vocabulary = Vocabulary.of(corpus, VocabularyConfig(min_character_count=1))
    config = BatchConfig(words=200)
    runs = [
        [
            row
            for batch in held_out(corpus, vocabulary, config, limit_words=limit, pairs=True)
            for row in pairs_of(batch, vocabulary)
        ]
        for limit in (None, None, 600)
    ]
    assert runs[0] == runs[1]
    assert 0 < len(runs[2]) < len(runs[0])
    for first, second, label in runs[0]:
        assert label == (second == successor(first))
