"""Text out of a language model: the next word drawn again and again, from left to right.

    in   a causal model, or a bidirectional one, whose forward half is used; prompts
    out  `GeneratedText`s: each prompt continued up to the end of a sentence

A sample depends on the seed, its prompt and its number alone: not on what is generated beside it.
Models know sentences, not texts: of a prompt of several, the last one is continued.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from polyseme.data.batch import BOS, EOS, FIRST_WORD, MASK, PAD, UNK
from polyseme.display import html_table, summary
from polyseme.errors import ModelError
from polyseme.model import Model
from polyseme.objectives.bidirectional import Bidirectional, Causal
from polyseme.pretraining import GenerationConfig
from polyseme.pretraining.evaluation import in_bits
from polyseme.text.preprocessing import TextPreprocessor
from polyseme.text.segmenters.patterns import SPACELESS

UNKNOWN = "<UNK>"
_ROWS = 64  # samples that are read at once
_NO_SPACE_BEFORE = frozenset(",.;:!?%)]}’”…，。、；：？！）》」』")
_NO_SPACE_AFTER = frozenset("([{“‘$£€#（《「『")
Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GeneratedText:
    """A prompt and what a model made of it."""

    prompt: str
    words: tuple[str, ...]
    """Those that were added."""
    is_finished: bool
    """Whether the model ended the sentence, or the limit did."""
    log_probability: float
    """Natural logarithm, of the added words and the end, by the model as it is."""

    @property
    def text(self) -> str:
        """The prompt and its continuation, written as people do."""
        return join_words(self.prompt.rstrip(), self.words)

    def __repr__(self) -> str:
        return summary(
            "GeneratedText", repr(self.text), f"{in_bits(self.log_probability):.1f} bits"
        )

    def _repr_html_(self) -> str:
        rows = [("text", self.text), ("bits", in_bits(self.log_probability))]
        return html_table("Generated text", rows)

    def as_json(self) -> dict[str, Any]:
        """Plain values: what `polyseme generate --json` prints."""
        return {
            "prompt": self.prompt,
            "text": self.text,
            "words": list(self.words),
            "finished": self.is_finished,
            "bits": in_bits(self.log_probability),
        }


def generate_texts(
    model: Model, prompts: Sequence[str], config: GenerationConfig
) -> Iterator[GeneratedText]:
    """All samples of the first prompt, then of the next. An empty prompt begins a sentence."""
    if not isinstance(model.network.objective, Causal | Bidirectional):
        raise ModelError(
            f"A model trained as '{model.config.objective.kind}' does not predict the next word. "
            "Generate with a causal (GPT) or bidirectional (ELMo) model."
        )
    preprocess = TextPreprocessor.of_model(model.preparation)
    next_words = _NextWords(model)
    drafts = (
        _Draft(prompt, _last_sentence(preprocess, prompt), _generator(config.seed, prompt, number))
        for prompt in prompts
        for number in range(config.samples)
    )
    while some := list(islice(drafts, _ROWS)):
        _finish(some, next_words, config)
        for draft in some:
            is_finished, total = draft.is_finished, draft.log_probability
            yield GeneratedText(draft.prompt, tuple(draft.added), is_finished, total)


def generate_from(
    folder: Path, prompts: Sequence[str], config: GenerationConfig
) -> list[GeneratedText]:
    """The same by the model in a folder."""
    return list(generate_texts(Model.load(folder), prompts, config))


@dataclass
class _Draft:
    """A text that is being written."""

    prompt: str
    context: list[str]
    """Words of its last sentence so far."""
    random: np.random.Generator
    added: list[str] = field(default_factory=list)
    log_probability: float = 0.0
    is_finished: bool = False


def _finish(drafts: Sequence[_Draft], next_words: "_NextWords", config: GenerationConfig) -> None:
    for _ in range(config.max_words):
        open_drafts = [draft for draft in drafts if not draft.is_finished]
        if not open_drafts:
            return
        wanted = config.top_k if config.temperature else 1
        log_probs, ids = next_words([draft.context for draft in open_drafts], wanted)
        for draft, logs, words in zip(open_drafts, log_probs, ids, strict=True):
            place = _draw(logs, words, config, draft.random)
            draft.log_probability += float(logs[place])
            if words[place] == EOS:
                draft.is_finished = True
            else:
                word = next_words.name(int(words[place]))
                draft.context.append(word)
                draft.added.append(word)


def _draw(
    log_probs: Floats, ids: Ids, config: GenerationConfig, random: np.random.Generator
) -> int:
    """The place of the word that is drawn. Words come with the likeliest first."""
    banned = [PAD, BOS, MASK] + ([] if config.unknown else [UNK])
    places = np.flatnonzero(~np.isin(ids, banned))
    if config.temperature == 0:
        return int(places[0])
    places = places[: config.top_k]
    scaled = log_probs[places] / config.temperature
    shares = np.exp(scaled - scaled[0])
    sums = np.cumsum(shares / shares.sum())
    if config.top_p is not None:
        kept = int(np.searchsorted(sums, config.top_p)) + 1
        sums = sums[:kept]
    # One number a word, whatever the settings: what is drawn next does not shift.
    drawn = random.random() * sums[-1]
    return int(places[min(int(np.searchsorted(sums, drawn, side="right")), len(sums) - 1)])


class _NextWords:
    """Sentences in, what may come next out."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._network = model.network.eval()
        objective = self._network.objective
        assert isinstance(objective, Causal | Bidirectional)
        self._head = objective.softmax
        settings = model.preparation.settings if model.preparation else None
        longest = settings.max_words if settings else None
        most = model.config.encoder.contextualizer.max_length
        lengths = [each for each in (longest, most and most - 2) if each]
        self._max_length = min(lengths, default=None)

    @torch.no_grad()
    def __call__(self, sentences: Sequence[list[str]], top_k: int | None) -> tuple[Floats, Ids]:
        """(N, K) natural logs of probabilities, falling, and (N, K) ids of words."""
        vocabulary = self._model.vocabulary
        read = [words[-self._max_length :] if self._max_length else words for words in sentences]
        batch = vocabulary.batch(read)
        encoded = self._network.encoder(batch)
        forward = encoded.halves[0] if encoded.is_separate else encoded.top
        last = torch.tensor([len(words) for words in read])  # BOS stands at 0
        states: Tensor = forward[torch.arange(len(read)), last]
        k = vocabulary.size if top_k is None else min(vocabulary.size, top_k + FIRST_WORD)
        log_probs, ids = self._head.top_k(states, k, table=self._network.word_embeddings)
        return log_probs.double().numpy(), ids.numpy()

    def name(self, word_id: int) -> str:
        if word_id == UNK:
            return UNKNOWN
        return str(self._model.vocabulary.words[word_id - FIRST_WORD].as_py())


def _generator(seed: int, prompt: str, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(prompt.encode("utf-8", "replace")), number])


def _last_sentence(preprocess: TextPreprocessor, prompt: str) -> list[str]:
    sentences = [sentence.words for sentence in preprocess(prompt).stored()]
    return list(sentences[-1]) if sentences else []


def join_words(beginning: str, words: Sequence[str]) -> str:
    """Words as running text: marks stand at the word they belong to, Chinese has no spaces."""
    text = beginning
    is_quoted = text.count('"') % 2 == 1
    was_opened = False  # the last word opens a quotation
    for word in words:
        is_glued = not text or was_opened or _is_glued(text[-1], word)
        is_quote = word == '"'
        text += word if is_glued or (is_quote and is_quoted) else f" {word}"
        was_opened = is_quote and not is_quoted
        is_quoted ^= is_quote
    return text


def _is_glued(last: str, word: str) -> bool:
    if word[0] in _NO_SPACE_BEFORE or last in _NO_SPACE_AFTER or word.startswith(("'", "n't")):
        return True
    return bool(SPACELESS.match(word) and SPACELESS.match(last))
