"""Which words have an id; what is saved is what is loaded."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from batches.making import Document, make_corpus, make_lexicon
from polyseme.batches import END, FIRST_WORD, PADDING, START, UNKNOWN, Lexicon, LexiconConfig
from polyseme.config import build
from polyseme.errors import ConfigError, CorpusError, InputError
from polyseme.text.corpus import Corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    training = Document("a", [["b", "b", "b", "a", "a"], ["a", "c", "é", "é", "once"]])
    held = Document("b", [["c"] * 50, ["é", "z", "z"]], held_out=True)
    return make_corpus(tmp_path / "c", [[training], [held]])


def test_ids_fall_with_the_count_outside_held_out_text(corpus: Corpus) -> None:
    lexicon = Lexicon.of(corpus, LexiconConfig(min_count=1))
    # c is the most frequent of all, but 50 of its 51 uses are held out; z is only held out.
    assert lexicon.words.to_pylist() == ["a", "b", "é", "c", "once"]
    assert lexicon.counts.tolist() == [3, 3, 2, 1, 1]
    assert lexicon.size == FIRST_WORD + 5


def test_rare_words_have_no_id(corpus: Corpus) -> None:
    assert Lexicon.of(corpus, LexiconConfig()).words.to_pylist() == ["a", "b", "é"]


def test_the_size_counts_the_marks(corpus: Corpus) -> None:
    lexicon = Lexicon.of(corpus, LexiconConfig(size=7))
    assert lexicon.size == 7
    assert lexicon.words.to_pylist() == ["a", "b"]


def test_characters_fall_with_their_count_outside_held_out_text(corpus: Corpus) -> None:
    # a and b 3 times, then c and é twice (c in "once"), e, n, o once; z is only held out.
    lexicon = Lexicon.of(corpus, LexiconConfig(min_character_count=1))
    assert lexicon.alphabet.characters == "abcéeno"
    assert lexicon.num_characters == 8 + 7
    assert Lexicon.of(corpus, LexiconConfig(min_character_count=2)).alphabet.characters == "abcé"


def test_counting_in_pieces_gives_the_same(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    config = LexiconConfig(size=8, min_count=1, min_character_count=1)
    whole = Lexicon.of(corpus, config)
    monkeypatch.setattr("polyseme.batches.counting._PIECE", 2)
    pieces = Lexicon.of(corpus, config)
    assert pieces.words.equals(whole.words)
    assert pieces.alphabet.characters == whole.alphabet.characters


def test_words_without_an_id_are_unknown() -> None:
    lexicon = make_lexicon(["the", "of"])
    ids = lexicon.ids_of(pa.array(["of", "nobody", "the", "", "THE"]))
    assert ids.tolist() == [FIRST_WORD + 1, UNKNOWN, FIRST_WORD, UNKNOWN, UNKNOWN]


def test_a_word_spelt_like_a_mark_is_no_mark() -> None:
    batch = make_lexicon().batch([["<S>", "</S>"]])
    assert batch.ids.tolist() == [PADDING, START, END, UNKNOWN, UNKNOWN]
    assert len({tuple(row) for row in batch.characters.tolist()}) == 5


def test_a_batch_has_a_row_for_each_sentence_between_its_marks() -> None:
    batch = make_lexicon(["the", "of"]).batch([["the", "of", "the"], [], ["of"]])
    assert batch.ids[batch.words].tolist() == [
        [START, 5, 6, 5, END],
        [START, END, PADDING, PADDING, PADDING],
        [START, 6, END, PADDING, PADDING],
    ]
    assert batch.lengths.tolist() == [5, 2, 3]


def test_each_distinct_word_comes_once_also_when_unknown() -> None:
    batch = make_lexicon().batch([["bad", "cab", "bad"], ["cab", "bad"]])
    assert batch.ids.tolist() == [PADDING, START, END, UNKNOWN, UNKNOWN]
    assert batch.words[0, 1] == batch.words[0, 3] == batch.words[1, 2]
    assert not batch.characters[3].equal(batch.characters[4])


def test_no_sentences_make_an_empty_batch() -> None:
    batch = make_lexicon().batch([])
    assert batch.words.shape == (0, 0)
    assert batch.mask.shape == (0, 0)


def test_half_a_character_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="half a character"):
        make_lexicon().batch([["ok", "\ud800"]])


@pytest.mark.parametrize("kind", ["none", "bytes", "unicode"])
def test_a_saved_lexicon_is_loaded_as_it_was(corpus: Corpus, tmp_path: Path, kind: str) -> None:
    config = LexiconConfig.model_validate({"characters": kind, "max_characters": 9})
    lexicon = Lexicon.of(corpus, config)
    lexicon.save(tmp_path / "m")
    loaded = Lexicon.load(tmp_path / "m")
    assert loaded.config == config
    assert loaded.words.equals(lexicon.words)
    assert np.array_equal(loaded.counts, lexicon.counts)
    assert loaded.num_characters == lexicon.num_characters
    sentences = [["a", "é", "new", "😀"]]
    assert loaded.batch(sentences).characters.equal(lexicon.batch(sentences).characters)
    assert loaded.batch(sentences).ids.equal(lexicon.batch(sentences).ids)


def test_saving_gives_the_same_bytes_and_leaves_nothing_else(
    corpus: Corpus, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        Lexicon.of(corpus, LexiconConfig()).save(tmp_path / name)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert first == second
    assert sorted(first) == ["characters.parquet", "vocabulary.parquet"]


@pytest.mark.parametrize("name", ["vocabulary.parquet", "characters.parquet"])
def test_a_folder_without_all_of_a_lexicon_is_refused(
    corpus: Corpus, tmp_path: Path, name: str
) -> None:
    Lexicon.of(corpus, LexiconConfig()).save(tmp_path / "m")
    (tmp_path / "m" / name).write_bytes(b"PAR1 no more")
    with pytest.raises(CorpusError, match=name):
        Lexicon.load(tmp_path / "m")
    (tmp_path / "m" / name).unlink()
    with pytest.raises(CorpusError, match=name):
        Lexicon.load(tmp_path / "m")


def test_a_corpus_vocabulary_is_not_taken_for_a_lexicon(corpus: Corpus) -> None:
    with pytest.raises(CorpusError, match="vocabulary"):
        Lexicon.load(corpus.folder)


def test_a_corpus_without_training_words_is_refused(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "c", [[Document("a", [["a", "a"]], held_out=True)]])
    with pytest.raises(CorpusError, match="min_count"):
        Lexicon.of(corpus, LexiconConfig())


def test_a_damaged_vocabulary_is_refused(corpus: Corpus) -> None:
    corpus.vocabulary.write_bytes(b"PAR1")
    with pytest.raises(CorpusError, match="damaged"):
        Lexicon.of(corpus, LexiconConfig())


@pytest.mark.parametrize("values", [{"size": 5}, {"max_characters": 3}, {"min_count": 0}])
def test_settings_that_leave_no_room_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        build(LexiconConfig, values)
