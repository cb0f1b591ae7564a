"""Sequence to sequence: a text for a text. Translating, rewriting, summarising.

The source is read with any embeddings, as for every other task. The target has vectors of its own,
learned with the task, for the most frequent words of the training data.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from rich.console import RenderableType

from polyseme.config import Settings
from polyseme.data.char_vocabulary import Integers
from polyseme.display import html_words, sentence, summary
from polyseme.errors import InputError
from polyseme.printable import PrintableText
from polyseme.tasks.bleu import TEXT_MEASURES, TextScores, load_bleu, score_texts
from polyseme.tasks.embeddings.features import InputDims
from polyseme.tasks.families.decoder import (
    END,
    FIRST_WORD,
    UNKNOWN,
    AttentionDecoder,
    DecoderConfig,
)
from polyseme.tasks.families.family import Columns, TaskFamily, Text
from polyseme.tasks.families.labels import COLOURS
from polyseme.tasks.families.layers import ContextConfig
from polyseme.tasks.texts import TextReader, WordTuple

MAX_WORDS = 1 << 18
"""Words of the target's vocabulary."""
LONGEST_SOURCE = 4_096
"""Words of a text that is read whole: every word written attends to all of them."""


class Seq2SeqConfig(Settings):
    """A text for a text: translating, rewriting, summarising."""

    kind: Literal["seq2seq"] = "seq2seq"
    context: ContextConfig = ContextConfig()
    """Layers that read the source."""
    decoder: DecoderConfig = DecoderConfig()
    """How the target is written."""
    vocabulary: int = Field(8_000, ge=1, le=MAX_WORDS)
    """Words that can be written without being copied: the most frequent of the training data's
    targets."""
    by_sentence: bool = True
    """Whether a text to be predicted is read sentence by sentence, as for translating; otherwise as
    a whole, as for summarising."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A text, and what is to be written for it."""

    source: Text
    target: Text
    by_character: bool = False
    """Whether characters are the words of both."""

    def with_words(self, reader: TextReader, /) -> Self:
        """Both as words."""
        return replace(
            self, source=self._split(self.source, reader), target=self._split(self.target, reader)
        )

    def _split(self, text: Text, reader: TextReader) -> WordTuple:
        if isinstance(text, tuple):
            return tuple("".join(text)) if self.by_character else text
        if self.by_character:
            return tuple("".join(reader.preprocess.normalize(text)[0].split()))
        return reader.split(text)

    @property
    def sentences(self) -> tuple[WordTuple, ...]:
        """The source."""
        assert isinstance(self.source, tuple)
        return (self.source,)


@dataclass(frozen=True)
class TargetVocabulary:
    """Words that can be written, in the order of their numbers from `FIRST_WORD` on."""

    words: WordTuple = ()

    @classmethod
    def of(cls, targets: Sequence[WordTuple], most: int) -> "TargetVocabulary":
        """The most frequent; of equally frequent ones the first in the order of characters."""
        counts = Counter(word for words in targets for word in words)
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(tuple(ordered[:most]))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each."""
        return {word: number for number, word in enumerate(self.words, start=FIRST_WORD)}

    def __len__(self) -> int:
        """How many numbers there are."""
        return FIRST_WORD + len(self.words)

    def copied(self, source: WordTuple) -> dict[str, int]:
        """Numbers of the source's words that are not in the vocabulary."""
        unknown = dict.fromkeys(word for word in source if word not in self.numbers)
        return {word: number for number, word in enumerate(unknown, start=len(self))}

    def encode(self, words: WordTuple, copied: Mapping[str, int]) -> list[int]:
        """Words by number."""
        return [self.numbers.get(word) or copied.get(word, UNKNOWN) for word in words]

    def decode(self, numbers: Sequence[int], source: WordTuple) -> WordTuple:
        """The reverse, for what was written for this source."""
        own = {number: word for word, number in self.copied(source).items()}
        return tuple(
            own[number] if number >= len(self) else self.words[number - FIRST_WORD]
            for number in numbers
        )


@dataclass(frozen=True, repr=False)
class PredictedText:
    """A text, and what was written for it."""

    source: str
    text: str

    def __repr__(self) -> str:
        return summary("Predicted", sentence(self.text.split()), sentence(self.source.split()))

    def _repr_html_(self) -> str:
        return html_words([(self.source, "", ""), (self.text, "", COLOURS[0])])

    def __rich__(self) -> RenderableType:
        text = PrintableText(self.source)
        text.append("  →  ", style="dim")
        return text.append(self.text, style="bold cyan")

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        return {"source": self.source, "text": self.text}


@dataclass(frozen=True)
class Seq2Seq(TaskFamily[Translated, PredictedText]):
    """A text for a text."""

    example_types: ClassVar = (Translated,)
    measures: ClassVar = TEXT_MEASURES
    config: Seq2SeqConfig
    vocabulary: TargetVocabulary = field(default=TargetVocabulary(), kw_only=True)
    by_character: bool = field(default=False, kw_only=True)

    def fit(self, examples: Sequence[Translated]) -> Self:
        """With the vocabulary of the training data, and whether it is read by character."""
        load_bleu()  # what is missing is to be told before an epoch is over, not after
        targets = [_target(example) for example in examples]
        vocabulary = TargetVocabulary.of(targets, self.config.vocabulary)
        if not vocabulary.words:
            raise InputError("There is nothing to learn: all targets are empty.")
        return replace(self, vocabulary=vocabulary, by_character=examples[0].by_character)

    def to_json(self) -> dict[str, Any]:
        """The same."""
        return {"target_words": list(self.vocabulary.words), "by_character": self.by_character}

    def restore(self, told: Mapping[str, Any]) -> Self:
        """The reverse."""
        words, by_character = told["target_words"], told["by_character"]
        is_list = isinstance(words, list) and 0 < len(words) <= MAX_WORDS
        if not is_list or not all(isinstance(word, str) and word for word in words):
            raise ValueError(f"target_words are not a list of up to {MAX_WORDS:,} words")
        if len(set(words)) < len(words) or not isinstance(by_character, bool):
            raise ValueError("target_words repeat a word, or by_character is not true or false")
        return replace(self, vocabulary=TargetVocabulary(tuple(words)), by_character=by_character)

    def facts(self) -> list[tuple[str, str]]:
        """How many words it can write."""
        units = "characters" if self.by_character else "words"
        return [("writes", f"{len(self.vocabulary.words):,} {units}")]

    def encode(self, examples: Sequence[Translated], *, with_gold: bool) -> Columns:
        """`source` (B, T) and, with its end, `target` (B, U): words by number."""
        source, target = [], []
        for example in examples:
            [words] = example.sentences
            copied = self.vocabulary.copied(words)
            source.append(np.array(self.vocabulary.encode(words, copied), np.int64))
            target.append(self._encode_target(example, copied))
        return {"source": source, "target": target} if with_gold else {"source": source}

    def _encode_target(self, example: Translated, copied: Mapping[str, int]) -> Integers:
        can_copy = self.config.decoder.copies
        numbers = self.vocabulary.encode(_target(example), copied if can_copy else {})
        return np.array([*numbers, END][: self.config.decoder.max_length], np.int64)

    def network(self, dims: InputDims) -> AttentionDecoder:
        """Layers that read, an LSTM that writes."""
        config = self.config
        return AttentionDecoder(config.context, config.decoder, dims, len(self.vocabulary))

    def predicted(self, example: Translated, found: Sequence[int]) -> PredictedText:
        """Both texts, their words joined."""
        [source] = example.sentences
        written = self.vocabulary.decode(found, source)
        return PredictedText(self._joined(source), self._joined(written))

    def score(
        self, examples: Sequence[Translated], predicted: Sequence[PredictedText]
    ) -> TextScores:
        """BLEU and chrF, of Chinese by characters."""
        gold = [self._joined(_target(example)) for example in examples]
        found = [each.text for each in predicted]
        return score_texts(gold, found, "zh" if self.by_character else "none")

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Translated]:
        """Every sentence of a text, or the text as a whole."""
        if not self.config.by_sentence:
            words = reader.words(texts[0], LONGEST_SOURCE)
            yield Translated(self._units(words), (), self.by_character)
            return
        is_empty = True
        for words in reader.sentences(texts[0]):
            is_empty = False
            yield Translated(self._units(words), (), self.by_character)
        if is_empty:
            raise InputError(f"There is no word in {texts[0][:60]!r}.")

    def _units(self, words: WordTuple) -> WordTuple:
        return tuple("".join(words)) if self.by_character else words

    def _joined(self, words: WordTuple) -> str:
        return "".join(words) if self.by_character else " ".join(words)


def _target(example: Translated) -> WordTuple:
    assert isinstance(example.target, tuple)
    return example.target
