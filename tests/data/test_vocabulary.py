"""Which words have an id; what is saved is what is loaded."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from data.making import Document, make_corpus, make_vocabulary
from polyseme.config import build
from polyseme.data.batch import BOS, EOS, FIRST_WORD, PAD, UNK
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.errors import ConfigError, CorpusError, InputError
from polyseme.text.corpus import Corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    training = Document("a", [["b", "b", "b", "a", "a"], ["a", "c", "é", "é", "once"]])
    held = Document("b", [["c"] * 50, ["é", "z", "z"]], held_out=True)
    return make_corpus(tmp_path / "c", [[training], [held]])


def test_ids_fall_with_the_count_outside_held_out_text(corpus: Corpus) -> None:
    vocabulary = Vocabulary.of(corpus, VocabularyConfig(min_count=1))
    # c is the most frequent of all, but 50 of its 51 uses are held out; z is only held out.
    assert vocabulary.words.to_pylist() == ["a", "b", "é", "c", "once"]
    assert vocabulary.counts.tolist() == [3, 3, 2, 1, 1]
    assert vocabulary.size == FIRST_WORD + 5


def test_characters_fall_with_their_count_outside_held_out_text(corpus: Corpus) -> None:
    # a and b 3 times, then c and é twice (c in "once"), e, n, o once; z is only held out.
    vocabulary = Vocabulary.of(corpus, VocabularyConfig(min_character_count=1))
    assert vocabulary.chars.characters == "abcéeno"
    assert vocabulary.num_characters == 8 + 7
    assert Vocabulary.of(corpus, VocabularyConfig(min_character_count=2)).chars.characters == "abcé"


def test_counting_in_pieces_gives_the_same(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    config = VocabularyConfig(size=8, min_count=1, min_character_count=1)
    whole = Vocabulary.of(corpus, config)
    monkeypatch.setattr("polyseme.data.vocabulary._PIECE", 2)
    pieces = Vocabulary.of(corpus, config)
    assert pieces.words.equals(whole.words)
    assert pieces.chars.characters == whole.chars.characters


def test_words_without_an_id_are_unknown() -> None:
    vocabulary = make_vocabulary(["the", "of"])
    ids = vocabulary.ids_of(pa.array(["of", "nobody", "the", "", "THE"]))
    assert ids.tolist() == [FIRST_WORD + 1, UNK, FIRST_WORD, UNK, UNK]


def test_a_word_written_like_a_special_token_is_none() -> None:
    batch = make_vocabulary().batch([["<S>", "</S>"]])
    assert batch.ids.tolist() == [PAD, BOS, EOS, UNK, UNK]
    assert len({tuple(row) for row in batch.char_ids.tolist()}) == 5


def test_a_batch_has_a_row_for_each_sentence_between_bos_and_eos() -> None:
    batch = make_vocabulary(["the", "of"]).batch([["the", "of", "the"], [], ["of"]])
    assert batch.ids[batch.words].tolist() == [
        [BOS, 5, 6, 5, EOS],
        [BOS, EOS, PAD, PAD, PAD],
        [BOS, 6, EOS, PAD, PAD],
    ]
    assert batch.lengths.tolist() == [5, 2, 3]


def test_each_distinct_word_comes_once_also_when_unknown() -> None:
    batch = make_vocabulary().batch([["bad", "cab", "bad"], ["cab", "bad"]])
    assert batch.ids.tolist() == [PAD, BOS, EOS, UNK, UNK]
    assert batch.words[0, 1] == batch.words[0, 3] == batch.words[1, 2]
    assert not batch.char_ids[3].equal(batch.char_ids[4])


def test_half_a_character_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="half a character"):
        make_vocabulary().batch([["ok", "\ud800"]])


@pytest.mark.parametrize("kind", ["none", "bytes", "unicode"])
def test_a_saved_vocabulary_is_loaded_as_it_was(corpus: Corpus, tmp_path: Path, kind: str) -> None:
    config = VocabularyConfig.model_validate({"characters": kind, "max_characters": 9})
    vocabulary = Vocabulary.of(corpus, config)
    vocabulary.save(tmp_path / "m")
    loaded = Vocabulary.load(tmp_path / "m")
    assert loaded.config == config
    assert loaded.words.equals(vocabulary.words)
    assert np.array_equal(loaded.counts, vocabulary.counts)
    assert loaded.num_characters == vocabulary.num_characters
    sentences = [["a", "é", "new", "😀"]]
    assert loaded.batch(sentences).char_ids.equal(vocabulary.batch(sentences).char_ids)
    assert loaded.batch(sentences).ids.equal(vocabulary.batch(sentences).ids)


@pytest.mark.parametrize("name", ["vocabulary.parquet", "characters.parquet"])
def test_a_folder_without_all_of_a_vocabulary_is_refused(
    corpus: Corpus, tmp_path: Path, name: str
) -> None:
    Vocabulary.of(corpus, VocabularyConfig()).save(tmp_path / "m")
    (tmp_path / "m" / name).write_bytes(b"PAR1 no more")
    with pytest.raises(CorpusError, match=name):
        Vocabulary.load(tmp_path / "m")
    (tmp_path / "m" / name).unlink()
    with pytest.raises(CorpusError, match=name):
        Vocabulary.load(tmp_path / "m")


def test_a_corpus_without_training_words_is_refused(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "c", [[Document("a", [["a", "a"]], held_out=True)]])
    with pytest.raises(CorpusError, match="min_count"):
        Vocabulary.of(corpus, VocabularyConfig())


def test_a_damaged_vocabulary_is_refused(corpus: Corpus) -> None:
    corpus.vocabulary.write_bytes(b"PAR1")
    with pytest.raises(CorpusError, match="damaged"):
        Vocabulary.of(corpus, VocabularyConfig())


@pytest.mark.parametrize("values", [{"size": 5}, {"max_characters": 3}, {"min_count": 0}])
def test_settings_that_leave_no_room_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        build(VocabularyConfig, values)
