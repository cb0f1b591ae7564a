"""What tells the meanings of a word apart: features of its uses.

    in   sentences as lists of words, and in each the uses asked for: from word, to word
    out  `UseFeatures`, a row for each use

A language model says most about a word's meaning by what it expects in its place, seen from both
sides, without the word itself. So the *context* of a use is the top layer's forward state just
before it and its backward state just after it: the states that predict the word. The words they
predict are its *substitutes*. An encoder that cannot be asked so (one of Hugging Face, word2vec)
gives its own vector of the word as context, and no substitutes. The *bag* is what the other words
of the sentence are about.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from polyseme.data.batch import EOS, FIRST_WORD
from polyseme.devices import one_thread
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import ConfigError, CorpusError, InputError
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_features import (
    Floats,
    Ids,
    Syntax,
    UseFeatures,
    calibration_folder,
)
from polyseme.objectives.bidirectional import (
    Bidirectional,
    BidirectionalConfig,
    Causal,
    CausalConfig,
)
from polyseme.pretraining.evaluation import score_sentences, unigram_log_shares
from polyseme.storage.parquet import read_table, write_table
from polyseme.text.corpus import Corpus, damage_explained

Span = tuple[int, int]
"""A use: its first word, and the one after its last."""

NUM_SUBSTITUTES = 100
"""Words kept for each use."""
COMMON_WORDS = 15_000
"""Substitutes are looked for among so many words, the most frequent: rarer ones are no names."""
_SIF = 1e-3
"""Arora et al. (2017): a word counts a / (a + its share of all words)."""
_RANDOM_TEXT = (400, 8)
"""Sentences of words drawn at random, and their length."""
_SYNTAX_SHARE = 0.05
"""Of the directions of a state, those that such a text moves most. By pairs of WiC and MCL-WiC."""
_SYNTAX_VERSION = 1  # rises with what it is found by
_ROWS = 512  # uses whose substitutes are found at once: 30 MB


class ModelUseEncoder:
    """Encodes uses by an embedder: by all that tells meanings apart."""

    layer: int | None = None

    def __init__(self, embedder: WordEmbedder, corpus: Corpus | None = None) -> None:
        """With the corpus whose uses they are, what is found out about the model is kept for it."""
        self.embedder = embedder
        self._kept_in = calibration_folder(corpus.folder) if corpus else None
        self._substituter = LexicalSubstituter.of(embedder)

    @property
    def words(self) -> list[str]:
        """What the numbers of substitutes stand for; empty without a head."""
        return self._substituter.words if self._substituter else []

    @property
    def num_substitutes(self) -> int:
        """How many words are kept for each use."""
        return min(NUM_SUBSTITUTES, len(self.words))

    @property
    def bag_dim(self) -> int:
        """Dimensions of a bag: of layer 0, of which a model of two stacks gives two copies."""
        return self.embedder.dim // (2 if self._has_two_stacks else 1)

    def __call__(
        self,
        sentences: Sequence[Sequence[str]],
        spans: npt.NDArray[np.int64],
        on_use: Callable[[int], None] = lambda _: None,
    ) -> UseFeatures:
        """Features of uses, one in each sentence; `spans` is (N, 2).

        `on_use` is called with how many are done.
        """
        found = []
        for pair in self.stream_single(sentences, [(int(b), int(e)) for b, e in spans]):
            found.append(pair)
            on_use(len(found))
        if not found:
            dims = self.embedder.dim, self.bag_dim
            return self.features(*(np.empty((0, dim), np.float32) for dim in dims))
        contexts, bags = zip(*found, strict=True)
        return self.features(np.concatenate(contexts), np.concatenate(bags))

    def encode(self, uses: Uses, on_use: Callable[[int], None] = lambda _: None) -> UseFeatures:
        """Features of uses; `on_use` is called with how many are done."""
        return self(uses.sentences(), uses.spans, on_use)

    def features(self, context: Floats, bag: Floats) -> UseFeatures:
        """With the substitutes that follow from the context."""
        substitutes = self._substituter.top_words(context) if self._substituter else None
        return UseFeatures(context, bag, substitutes)

    def without_syntax(self, features: UseFeatures) -> UseFeatures:
        """The same uses, what the nearest words decide by themselves taken out of their contexts.

        That says which part of speech is expected, not which word. It is in the way where uses of
        one part of speech are compared, and a great help where noun and verb are to be told apart.
        """
        if self.syntax is None:
            return features
        return replace(features, context=self.syntax.removed(features.context))

    @cached_property
    def syntax(self) -> Syntax | None:
        """What `without_syntax` takes out; None without a head.

        It takes as long to find as 150 uses.
        """
        if self._substituter is None:
            return None
        if self._kept_in is None:
            return self._substituter.find_syntax()
        path = self._kept_in / f"syntax-{_SYNTAX_VERSION}-{self.fingerprint[:16]}.parquet"
        with contextlib.suppress(OSError, CorpusError), damage_explained(path):
            return Syntax.of_table(read_table(path, ["side", "direction"]))
        found = self._substituter.find_syntax()
        with contextlib.suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            write_table(Syntax.as_table(found), path)
        return found

    def gains(
        self, sentences: Sequence[Sequence[str]], corpus: Corpus
    ) -> tuple[float, float] | None:
        """How many times better than the frequencies of a corpus alone the model predicts words of
        these sentences of it, and words of the held-out sentences of its own corpus.

        Not perplexities themselves, which differ more between kinds of text than between models.
        Means over directions; None of what does not predict words or does not know the second.
        """
        model = self.embedder.model if isinstance(self.embedder, Embedder) else None
        told = model.metadata if model else {}
        own, unigram = told.get("perplexity"), told.get("unigram_perplexity")
        if not model or not own or not unigram or not self._substituter:
            return None
        log_share = unigram_log_shares(model.vocabulary, corpus)
        total = by_frequency = 0.0
        for words, score in zip(sentences, score_sentences(model, sentences), strict=True):
            ids = model.vocabulary.ids_of(pa.array(words, pa.string()))
            total += score.total
            by_frequency += float(log_share[ids].sum() + log_share[EOS])
        number = sum(len(words) + 1 for words in sentences)
        own_gain = np.mean([np.log(unigram[part] / own[part]) for part in own])
        return float(np.exp((total - by_frequency) / number)), float(np.exp(own_gain))

    @property
    def fingerprint(self) -> str:
        """That of the model."""
        return self.embedder.fingerprint

    def stream(
        self, sentences: Iterable[Sequence[str]], spans: Iterable[Sequence[Span]]
    ) -> Iterator[tuple[Floats, Floats]]:
        """For each sentence the context and the bag of each of its uses, (n, D) both."""
        waiting: deque[Sequence[str]] = deque()

        def remembered() -> Iterator[Sequence[str]]:
            for sentence in sentences:
                waiting.append(sentence)
                yield sentence

        for layers, uses in zip(self.embedder.stream(remembered()), spans, strict=True):
            yield self.one(layers, waiting.popleft(), uses)

    def stream_single(
        self, sentences: Sequence[Sequence[str]], spans: Sequence[Span]
    ) -> Iterator[tuple[Floats, Floats]]:
        """As `stream`, for one use in each sentence: (1, D) both. Twice as fast where it can be."""
        if not (
            isinstance(self.embedder, Embedder) and self._substituter and self.embedder.reads_around
        ):
            yield from self.stream(sentences, ([span] for span in spans))
            return
        around = self.embedder.stream_context(sentences, spans)
        for (states, static), words, span in zip(around, sentences, spans, strict=True):
            yield states[None], self._bag(static, words, [span])

    def one(
        self, layers: Floats, words: Sequence[str], uses: Sequence[Span]
    ) -> tuple[Floats, Floats]:
        """Context and bag of each use in a sentence whose vectors (L, T, D) are known."""
        static = layers[0]
        if self._has_two_stacks:
            static = static[:, : static.shape[1] // 2]  # both halves of layer 0 are the same
        return self._context(layers, uses), self._bag(static, words, uses)

    @property
    def _has_two_stacks(self) -> bool:
        embedder = self.embedder
        return isinstance(embedder, Embedder) and embedder.model.config.encoder.is_separate

    def _context(self, layers: Floats, uses: Sequence[Span]) -> Floats:
        if self._substituter:
            return self._substituter.states(layers[-1], uses)
        means = [layers[-1, begin:end].mean(axis=0) for begin, end in uses]
        return np.stack(means) if means else np.empty((0, layers.shape[-1]), np.float32)

    def _bag(self, static: Floats, words: Sequence[str], uses: Sequence[Span]) -> Floats:
        each = np.array([self._weights.get(word, 1.0) for word in words], np.float32)
        weights = np.tile(each, (len(uses), 1))  # (n, T)
        for row, (begin, end) in zip(weights, uses, strict=True):
            row[begin:end] = 0  # what is said of a use must not know the word itself
        lengths = np.sqrt(np.einsum("td,td->t", static, static))
        total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
        bags: Floats = weights / (total * np.maximum(lengths, 1e-9)) @ static
        return bags

    @cached_property
    def _weights(self) -> dict[str, float]:
        """Frequent words say little of what a sentence is about."""
        if not isinstance(self.embedder, Embedder):
            return {}  # nobody has counted its words: all weigh the same
        vocabulary = self.embedder.model.vocabulary
        shares = vocabulary.counts / max(1, vocabulary.counts.sum())
        weights = (_SIF / (_SIF + shares)).tolist()
        return dict(zip(vocabulary.words.to_pylist(), weights, strict=True))


class LexicalSubstituter:
    """What a language model expects in the place of a word: states, and words they predict."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._model = embedder.model
        self._device = embedder.device
        self._is_both = isinstance(embedder.model.config.objective, BidirectionalConfig)
        self._forward, self._backward = self._edges()

    @classmethod
    def of(cls, embedder: WordEmbedder) -> "LexicalSubstituter | None":
        """None for an encoder whose states have seen the word they would predict."""
        if not isinstance(embedder, Embedder):
            return None
        objective = embedder.model.config.objective
        if not isinstance(objective, BidirectionalConfig | CausalConfig):
            return None
        return cls(embedder)

    @property
    def words(self) -> list[str]:
        """The words that may be substitutes of many uses, the most frequent first."""
        return self.all_words[:COMMON_WORDS]

    @cached_property
    def all_words(self) -> list[str]:
        """All words that the model can predict, the most frequent first."""
        found: list[str] = self._model.vocabulary.words.to_pylist()
        return found

    def states(self, top: Floats, uses: Sequence[Span]) -> Floats:
        """(n, D) from the top layer of a sentence (T, D): before each use, and after it."""
        half = top.shape[1] // 2 if self._is_both else top.shape[1]
        found = np.empty((len(uses), top.shape[1]), np.float32)
        for number, (begin, end) in enumerate(uses):
            found[number, :half] = top[begin - 1, :half] if begin else self._forward
            if self._is_both:
                found[number, half:] = top[end, half:] if end < len(top) else self._backward
        return found

    @torch.no_grad()
    def logits(self, states: Floats, num_words: int) -> torch.Tensor:
        """(N, V) for the `num_words` most frequent words: log P(word | left, right) - constant.

        By Bayes' rule, if left and right are independent given the word:
        log P(word | left) + log P(word | right) - log P(word).
        """
        objective = self._model.network.objective
        assert isinstance(objective, Bidirectional | Causal)
        ids = torch.arange(FIRST_WORD, FIRST_WORD + num_words)
        halves = torch.from_numpy(states).chunk(2 if self._is_both else 1, dim=1)
        table = self._model.network.word_embeddings
        softmax = objective.softmax
        if not self._is_both:
            return softmax.logits(halves[0], ids, table=table)
        # x W + b and y W + b, added, are twice what their mean gives: one product, not two.
        both = 2 * softmax.logits((halves[0] + halves[1]) / 2, ids, table=table)
        return both - self._log_frequencies[:num_words]

    @torch.no_grad()
    def log_probabilities(self, states: Floats) -> torch.Tensor:
        """(N, V) of all words, in float64: by the cloze head, or by both directions' heads."""
        num_words, objective = len(self.all_words), self._model.network.objective
        if isinstance(objective, Bidirectional) and objective.cloze is not None:
            ids = torch.arange(FIRST_WORD, FIRST_WORD + num_words)
            vectors = objective.cloze(*torch.from_numpy(states).chunk(2, dim=1))
            table = self._model.network.word_embeddings
            logits = objective.softmax.logits(vectors, ids, table=table)
        else:
            logits = self.logits(states, num_words)
        return logits.double().log_softmax(dim=1)

    @cached_property
    def _log_frequencies(self) -> torch.Tensor:
        """(V,) natural logs of the shares of words, the most frequent first."""
        counts = torch.tensor(self._model.vocabulary.counts, dtype=torch.float64)
        return (counts.clamp(min=0.5) / counts.sum().clamp(min=1)).log().float()

    def top_words(self, states: Floats) -> Ids:
        """(N, K) the best substitutes: words expected here more than elsewhere."""
        num_words = min(COMMON_WORDS, len(self._model.vocabulary.words))
        k = min(NUM_SUBSTITUTES, num_words)
        found = np.empty((len(states), k), np.int32)
        for begin in range(0, len(states), _ROWS):
            rows = slice(begin, begin + _ROWS)
            logits = self.logits(states[rows], num_words)
            if not self._is_both:  # from one side, frequent words would come first everywhere
                logits = logits - self._log_frequencies[:num_words]
            found[rows] = logits.topk(k, dim=1).indices.numpy()
        return found

    def find_syntax(self) -> Syntax:
        """The directions in which states vary most in a text of words drawn at random.

        Such a text is about nothing. What moves a state there is the word or two next to it, which
        say that a noun may follow but not which; in any other text the same moves it as well.
        """
        counts = np.maximum(self._model.vocabulary.counts, 0.5)
        drawn = np.random.default_rng(1).choice(len(counts), _RANDOM_TEXT, p=counts / counts.sum())
        sentences = [[self.all_words[number] for number in row] for row in drawn.tolist()]
        top = np.concatenate([v[0] for v in self._embedder.stream(sentences, layers="top")])
        with one_thread():
            halves = np.split(top, 2 if self._is_both else 1, 1)
            return Syntax(tuple(map(_main_directions, halves)))

    @torch.no_grad()
    def _edges(self) -> tuple[Any, Any]:
        """The forward state after BOS and the backward state before EOS, the same everywhere."""
        batch = self._model.vocabulary.batch([["a"]]).to(self._device)
        encoded = self._model.network.encoder(batch)
        if not self._is_both:
            return encoded.top[0, 0].float().cpu().numpy(), None
        forward, backward = (half.float().cpu().numpy() for half in encoded.halves)
        return forward[0, 0], backward[0, -1]


def _main_directions(vectors: Floats) -> Floats:
    """(K, D) the first principal components."""
    dim = vectors.shape[1]
    _, directions = np.linalg.eigh(np.cov(vectors.astype(np.float64), rowvar=False))
    found: Floats = directions[:, dim - round(_SYNTAX_SHARE * dim) :].T.astype(np.float32)
    return found


class LayerUseEncoder(ModelUseEncoder):
    """Encodes a use by the mean of its words' vectors in one layer, to see what each layer knows.

    Layer 0 knows the form alone, so that all uses of one form are the same.
    """

    def __init__(self, embedder: WordEmbedder, layer: int) -> None:
        if not 0 <= layer < embedder.num_layers:
            raise ConfigError(
                f"There is no layer {layer}: this model has layers 0 to {embedder.num_layers - 1}."
            )
        super().__init__(embedder)
        self.layer: int = layer

    def without_syntax(self, features: UseFeatures) -> UseFeatures:
        """As they are: what a layer knows is what is asked for."""
        return features

    def __call__(
        self,
        sentences: Sequence[Sequence[str]],
        spans: npt.NDArray[np.int64],
        on_use: Callable[[int], None] = lambda _: None,
    ) -> UseFeatures:
        """The vector of each use, one in each sentence; `spans` is (N, 2)."""
        found = np.empty((len(spans), self.embedder.dim), np.float32)
        vectors = self.embedder.stream(sentences, layers=self.layer)
        for number, ((begin, end), words) in enumerate(zip(spans.tolist(), vectors, strict=True)):
            found[number] = words[0, begin:end].mean(axis=0)
            on_use(number + 1)
        if len(found) and not (found != found[0]).any():
            raise InputError(
                f"In layer {self.layer} all {len(found):,} uses are the same: this layer "
                "sees the word but not its sentence. Use a higher layer, or add forms with --forms."
            )
        return UseFeatures(found, np.zeros((len(found), 1), np.float32), None)
