"""Text prepared in use as in training, or refused."""

from pathlib import Path

import pytest
from pretraining.making import rule_corpus

from polyseme.errors import CorpusError, InputError
from polyseme.text.running import RunningText, text_settings


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    return text_settings(rule_corpus(Path(tmp_path_factory.mktemp("running"))))


def test_running_text_is_split_as_the_corpus_was(settings: dict[str, dict[str, object]]) -> None:
    found = RunningText(settings).sentences("The old cat purrs. Don't ask Dr. Fox!")
    assert found == [
        ["The", "old", "cat", "purrs", "."],
        ["Do", "n't", "ask", "Dr.", "Fox", "!"],
    ]


def test_long_sentences_are_cut_as_in_the_corpus(settings: dict[str, dict[str, object]]) -> None:
    [first, second] = RunningText(settings).sentences("cat " * 300)
    assert len(first) == len(second) == 150


def test_another_segmenter_version_is_refused(settings: dict[str, dict[str, object]]) -> None:
    segmenter = {"name": "spacy", "version": "0.1", "language": "en"}
    other = {**settings, "preparation": {**settings["preparation"], "segmenter": segmenter}}
    with pytest.raises(CorpusError, match=r"'0\.1'"):
        RunningText(other)


def test_binary_data_is_refused(settings: dict[str, dict[str, object]]) -> None:
    with pytest.raises(InputError, match="nul-character"):
        RunningText(settings).sentences("a\0b")
