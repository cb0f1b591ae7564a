"""The one path from raw text to sentences with offsets, and how a corpus's text came that way.

    in   a text
    out  `PreprocessedText`: the text normalized, its words, where each begins, its sentences

`prepare` applies it to every record. What uses a model applies the `Preparation` stored with the
model, and is refused if the installed tokenizers would find other words.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from polyseme import __version__
from polyseme.config import Settings
from polyseme.errors import CorpusError, ModelError
from polyseme.text.normalization import describe_script, normalize
from polyseme.text.records import WordAttributes
from polyseme.text.segmenters import SegmenterInfo, describe_segmenter, in_words, load_segmenter
from polyseme.text.segmenters.patterns import WordSpans
from polyseme.text.sentences import split_long, split_sentences
from polyseme.text.settings import CorpusConfig

WordRange = tuple[int, int]


class Preparation(Settings):
    """How text became words: in the manifest of a corpus, and of every model trained on it."""

    settings: CorpusConfig
    """Those of the corpus."""
    segmenter: SegmenterInfo
    """What found the words."""
    script: dict[str, str]
    """What converted Chinese script; empty if nothing did."""
    polyseme: str
    """The version that prepared the text."""

    @classmethod
    def of(cls, config: CorpusConfig) -> "Preparation":
        """With the tools that are installed here."""
        return cls(
            settings=config,
            segmenter=describe_segmenter(
                config.chosen_segmenter, config.language, config.user_words
            ),
            script=describe_script(config),
            polyseme=__version__,
        )

    @classmethod
    def from_manifest(cls, values: Any) -> "Preparation":
        """As a manifest has it; a ValueError names the first thing that is wrong."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(["preparation", *map(str, problem["loc"])])
            raise ValueError(f"{place}: {problem['msg']}") from error

    def to_manifest(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return self.model_dump(mode="json")

    def difference(self, other: "Preparation") -> tuple[str, str] | None:
        """What differs, in words, of this one and the other; None if both find the same words."""
        if self.segmenter != other.segmenter:
            return f"words by {in_words(self.segmenter)}", f"words by {in_words(other.segmenter)}"
        if self.script != other.script:
            return _script_in_words(self.script), _script_in_words(other.script)
        return None

    @property
    def options(self) -> str:
        """Those of `polyseme prepare` that find words in the same way, with the same tools."""
        script = f" --script {self.settings.script}" if self.settings.script else ""
        return f"--language {self.settings.language} --segmenter {self.segmenter['name']}{script}"


def _script_in_words(script: Mapping[str, str]) -> str:
    if not script:
        return "text in the script it came in"
    return f"text in {script['script']} script by {script['name']} {script['version']}"


@dataclass(frozen=True, slots=True)
class PreprocessedText:
    """A text as a corpus stores it."""

    text: str
    """Normalized; offsets count its characters."""
    words: WordSpans
    sentences: list[list[WordRange]]
    """The words of each sentence, from and to; several spans where it is too long to be stored
    as one."""
    has_controls: bool
    """Whether control characters were replaced by spaces."""
    attributes: WordAttributes = ()
    """What the source says of each word."""

    def stored(self) -> Iterator[WordSpans]:
        """The sentences as a corpus stores them, long ones split."""
        return (self._slice(*span) for spans in self.sentences for span in spans)

    def whole(self) -> Iterator[WordSpans]:
        """The sentences as they were found."""
        return (self._slice(spans[0][0], spans[-1][1]) for spans in self.sentences)

    def _slice(self, begin: int, end: int) -> WordSpans:
        return WordSpans(self.words.words[begin:end], self.words.starts[begin:end])


class TextPreprocessor:
    """Finds sentences and words by the settings of a corpus."""

    def __init__(self, config: CorpusConfig) -> None:
        self.config = config
        self._segmenter = load_segmenter(
            config.chosen_segmenter, config.language, config.user_words
        )

    @classmethod
    def of_model(cls, preparation: Preparation | None) -> "TextPreprocessor":
        """That of a model's corpus, or an error if text cannot be prepared so here."""
        if preparation is None:
            raise ModelError(
                "This model does not say how text is split into words. Load it with the rules of "
                "a language, tokenizer_from='en' (--tokenizer-from en), or with those of a model "
                "or a corpus in a folder. Or give lists of words: [['She', 'plays'], ['It', "
                "'rains']]."
            )
        if differs := preparation.difference(Preparation.of(preparation.settings)):
            before, now = differs
            raise CorpusError(
                f"The model reads {before}; what is installed here gives {now}. "
                "Install that version, or train a model with this one."
            )
        return cls(preparation.settings)

    def __call__(self, text: str) -> PreprocessedText:
        """Raw text, all the way; an UnfitTextError if it is none."""
        normalized, has_controls = self.normalize(text)
        words = self.split_words(normalized)
        found = split_sentences(words)
        return self.in_sentences(normalized, words, found, has_controls=has_controls)

    def normalize(self, text: str) -> tuple[str, bool]:
        """The text that offsets refer to, and whether it had control characters."""
        return normalize(text, self.config)

    def split_words(self, normalized: str) -> WordSpans:
        """The words of a text that is normalized, and where each begins."""
        return self._segmenter.split(normalized)

    def in_sentences(
        self, text: str, words: WordSpans, found: list[WordRange], *, has_controls: bool
    ) -> PreprocessedText:
        """Words whose sentences are known, long ones split as in the corpus."""
        spans = [split_long(begin, end, self.config.max_words) for begin, end in found]
        return PreprocessedText(text, words, spans, has_controls)
