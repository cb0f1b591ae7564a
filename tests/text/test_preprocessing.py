"""Text prepared in use as in training, or refused."""

from pathlib import Path

import pytest
from pretraining.making import rule_corpus

from polyseme.errors import CorpusError, InputError, ModelError
from polyseme.text.preprocessing import Preparation, TextPreprocessor
from text.making import make_config


@pytest.fixture(scope="module")
def preparation(tmp_path_factory: pytest.TempPathFactory) -> Preparation:
    return rule_corpus(Path(tmp_path_factory.mktemp("preparation"))).preparation


def stored(preparation: Preparation, text: str) -> list[list[str]]:
    preprocess = TextPreprocessor.of_model(preparation)
    return [sentence.words for sentence in preprocess(text).stored()]


def test_text_is_split_as_the_corpus_was(preparation: Preparation) -> None:
    assert stored(preparation, "The old cat purrs. Don't ask Dr. Fox!") == [
        ["The", "old", "cat", "purrs", "."],
        ["Do", "n't", "ask", "Dr.", "Fox", "!"],
    ]
    assert [len(words) for words in stored(preparation, "cat " * 300)] == [150, 150]
    assert Preparation.from_manifest(preparation.to_manifest()) == preparation


def test_offsets_are_those_of_the_normalized_text() -> None:
    found = TextPreprocessor(make_config())("One  two.\x0c Three . Four")
    assert found.text == "One  two.  Three . Four"
    assert found.has_controls
    assert [(s.words, s.starts) for s in found.whole()] == [
        (["One", "two.", "Three", "."], [0, 5, 11, 17]),
        (["Four"], [19]),
    ]


def test_another_segmenter_version_is_refused(preparation: Preparation) -> None:
    other = {**preparation.to_manifest(), "segmenter": {"name": "spacy", "version": "0.1"}}
    with pytest.raises(CorpusError, match=r"\(0\.1\)"):
        TextPreprocessor.of_model(Preparation.from_manifest(other))


def test_a_model_that_does_not_say_how_is_given_words_only() -> None:
    with pytest.raises(ModelError, match="lists of words"):
        TextPreprocessor.of_model(None)


def test_what_is_wrong_in_a_manifest_is_named(preparation: Preparation) -> None:
    good = preparation.to_manifest()
    for name, wrong in (("settings", {}), ("segmenter", {"name": "x"}), ("script", 3)):
        with pytest.raises(ValueError, match=rf"preparation\.{name}"):
            Preparation.from_manifest({**good, name: wrong})
    with pytest.raises(ValueError, match=r"preparation\.segmenter\.more"):
        Preparation.from_manifest({**good, "segmenter": {**good["segmenter"], "more": "x"}})


def test_binary_data_is_refused(preparation: Preparation) -> None:
    with pytest.raises(InputError, match="nul-character"):
        stored(preparation, "a\0b")
