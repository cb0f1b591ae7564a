"""The words a language model expects in the place of one word of a sentence.

    in   a sentence, one word of it marked
    out  `Substitutes`: words with their probabilities, and how likely the word itself is there

The model does not see the word itself. A cloze head predicts it from both sides at once. Without
one, by Bayes' rule, if left and right are independent given the word: P(word | left)
P(word | right) / P(word), which is then made to sum to one. The two sides are not quite
independent, which makes these probabilities too sure of themselves; their order can be trusted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from polyseme.display import html_table, sentence, summary
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import ModelError
from polyseme.meanings.concordance.uses import MarkedUse
from polyseme.meanings.features.use_encoder import LexicalSubstituter


@dataclass(frozen=True)
class Substitutes:
    """What could stand in the place of a use."""

    use: MarkedUse
    words: tuple[tuple[str, float], ...]
    """The likeliest words, each with its probability."""
    own: tuple[int, float] | None
    """The rank of the word that stands there, from 1, and its probability; None if the model has
    no such word, or if several words are marked."""

    def __repr__(self) -> str:
        words = ", ".join(f"{word} {probability:.1%}" for word, probability in self.words[:5])
        return summary(
            "Substitutes", f"for {self.use.form!r} in {sentence(self.use.words)!r}", words
        )

    def _repr_html_(self) -> str:
        rows = [(rank, *pair) for rank, pair in enumerate(self.words, start=1)]
        title = f"Substitutes for {self.use.form!r} in {sentence(self.use.words)!r}"
        return html_table(title, rows, ("rank", "word", "probability"))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        rank, probability = self.own or (None, None)
        return {
            "sentence": list(self.use.words),
            "begin": self.use.begin,
            "end": self.use.end,
            "substitutes": [{"word": word, "probability": p} for word, p in self.words],
            "rank_of_word": rank,
            "probability_of_word": probability,
        }


def find_substitutes(embedder: WordEmbedder, use: MarkedUse, number: int = 10) -> Substitutes:
    """The likeliest words in the place of a use, among all words the model can predict."""
    substituter = LexicalSubstituter.of(embedder)
    if substituter is None:
        raise ModelError(
            "This model has seen the word it would have to predict, so it gives no substitutes. "
            "Ask a bidirectional (ELMo) or causal (GPT) model."
        )
    top = next(iter(embedder.stream([use.words], layers="top")))[0]
    states = substituter.states(top, [(use.begin, use.end)])
    words = substituter.all_words
    log_probs = substituter.log_probabilities(states)[0]
    best = torch.topk(log_probs, min(number, len(words)))
    pairs = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    found = tuple((words[index], probability) for index, probability in pairs)
    return Substitutes(use, found, _own(use, words, log_probs.numpy()))


def _own(use: MarkedUse, words: list[str], log_probs: Any) -> tuple[int, float] | None:
    if use.end - use.begin != 1 or use.words[use.begin] not in words:
        return None
    index = words.index(use.words[use.begin])
    rank = int((log_probs > log_probs[index]).sum()) + 1
    return rank, float(np.exp(log_probs[index]))
