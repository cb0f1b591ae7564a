"""Running text as a finished corpus would hold it: the same cleaning, words and sentences.

What uses a model prepares text by the settings the model carries, and is refused where the tools
installed would find other words.
"""

from collections.abc import Mapping
from typing import Any

from polyseme.config import build
from polyseme.errors import CorpusError, InputError, ModelError
from polyseme.shapes import check_shape
from polyseme.text.clean import UnfitTextError, clean
from polyseme.text.corpus import Corpus
from polyseme.text.prepare import describe_preparation
from polyseme.text.segmenters import Words, load_segmenter
from polyseme.text.sentences import cut_long, split_sentences
from polyseme.text.settings import CorpusConfig

_DECIDING = ("segmenter", "script")


def text_settings(corpus: Corpus) -> dict[str, Any]:
    """What a model keeps of its corpus, so that text can be prepared alike ever after."""
    return {
        "settings": corpus.manifest["settings"],
        "preparation": corpus.manifest["preparation"],
    }


def check_preparation(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the text was prepared, if a model tells all that `text_settings` gave it."""
    try:
        described: Mapping[str, Any] = settings["preparation"]
        check_shape(settings["settings"], dict[str, Any])
        check_shape({part: described[part] for part in _DECIDING}, dict[str, Any])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"This model does not tell how its text was prepared ({error}). Take it anew from "
            "where it came."
        ) from error
    return described


class RunningText:
    """Finds sentences and words as they were found for a model's corpus."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        then = check_preparation(settings)
        self._config = build(CorpusConfig, settings["settings"])
        now = describe_preparation(self._config)
        for part in _DECIDING:
            before = then.get(part) if isinstance(then, Mapping) else None
            if before != now[part]:
                raise CorpusError(
                    f"The model's text was prepared with {before}; installed is {now[part]}. "
                    "Install those versions, or train a model with these."
                )
        self._segmenter = load_segmenter(self._config.chosen_segmenter, self._config.language)

    def words(self, cleaned: str) -> Words:
        """The words of a text that is clean, and where each begins."""
        return self._segmenter.split(cleaned)

    def sentences(self, text: str) -> list[list[str]]:
        """The words of each sentence of a text, long ones cut as in the corpus."""
        try:
            cleaned, _ = clean(text, self._config)
        except UnfitTextError as error:
            raise InputError(f"This text cannot be read: {error}. Is it binary data?") from error
        words = self.words(cleaned).words
        return [
            words[begin:end]
            for span in split_sentences(words)
            for begin, end in cut_long(*span, self._config.max_words)
        ]
