"""Words in, vectors out: what a model is for.

    in   texts, or sentences as lists of words, any number of them
    out  every layer's vectors of every word, in the order given

A sentence's vectors depend on the sentence alone: not on its neighbours, on what was embedded
before, or on padding. No state is kept but layer 0 of words met lately, which changes no bit.

Layer 0 is also a word's vector without context, in the manner of gensim's KeyedVectors:

    embedder.wv["bank"]                            (D,)
    embedder.wv.most_similar("bank")               words and cosines
    embedder.wv.save_word2vec_format("bank.vec")   for every tool that reads word2vec's text format

One such vector stands for all of a word's meanings. Where they matter, embed the word in its
sentence.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from os import PathLike
from pathlib import Path

import numpy as np

from polyseme.devices import choose_device, in_parallel, set_threads
from polyseme.display import describe_layers, html_table, summary
from polyseme.embedding.sentence_encoder import SENTENCES, SentenceEncoder, group_sentences
from polyseme.embedding.settings import Layers, Precision
from polyseme.embedding.word_embedder import (
    LayerChoice,
    Truncation,
    Vectors,
    WordEmbedder,
    check_words,
    normalized,
)
from polyseme.encoders.environment import Environment, describe
from polyseme.encoders.lstm import LstmConfig
from polyseme.errors import ConfigError, InputError
from polyseme.model import Model
from polyseme.storage.files import scratch_for, sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.storage.installed import model_folder
from polyseme.text.preprocessing import Preparation
from polyseme.text.settings import CorpusConfig

Words = str | Sequence[str]
_CHUNK = 10_000  # words whose spellings are in memory at once


class StaticVectors:
    """The vectors of a model's words, most frequent first. They are made when first asked for."""

    def __init__(
        self, model: Model, static: Callable[[Sequence[str]], Vectors], vector_size: int
    ) -> None:
        self._model, self._static = model, static
        self.vector_size = vector_size
        """Dimensions of a vector."""

    def __repr__(self) -> str:
        return summary("StaticVectors", f"{len(self):,} words", f"{self.vector_size} dimensions")

    @cached_property
    def index_to_key(self) -> list[str]:
        """The words of the model's vocabulary, most frequent first."""
        words: list[str] = self._model.vocabulary.words.to_pylist()
        return words

    @cached_property
    def key_to_index(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.index_to_key)}

    @cached_property
    def vectors(self) -> Vectors:
        """(V, D): of all words of the vocabulary."""
        return self._vectors_of(self.index_to_key)

    @cached_property
    def _normalized(self) -> Vectors:
        return normalized(self.vectors)

    def __len__(self) -> int:
        return len(self.index_to_key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.index_to_key)

    def __contains__(self, word: object) -> bool:
        """Whether a word has a vector: any, if the model reads characters."""
        if not (isinstance(word, str) and word):
            return False
        return self._model.config.encoder.widest_filter > 0 or word in self.key_to_index

    def __getitem__(self, words: Words) -> Vectors:
        """(D,) of a word, (N, D) of several."""
        if isinstance(words, str):
            vector: Vectors = self._vectors_of([words])[0]
            return vector
        return self._vectors_of(list(words))

    def similarity(self, one: str, other: str) -> float:
        """The cosine of two words' vectors."""
        first, second = normalized(self[[one, other]])
        return float(first @ second)

    def most_similar(
        self, positive: Words = (), negative: Words = (), topn: int = 10
    ) -> list[tuple[str, float]]:
        """The words of the vocabulary nearest to the mean of some, those named negative taken off.

        `most_similar(positive=["king", "woman"], negative=["man"])`, as in gensim.
        """
        added, taken = _listed(positive), _listed(negative)
        if not added and not taken:
            raise InputError("Name a word: most_similar('bank').")
        rows = normalized(self[[*added, *taken]])
        signs = np.array([1.0] * len(added) + [-1.0] * len(taken), np.float32)
        wanted = normalized((signs @ rows)[None])[0]
        scores = self._normalized @ wanted  # (V,)
        given = {*added, *taken}
        nearest = np.argsort(-scores, kind="stable")[: topn + len(given)]
        found = [(self.index_to_key[row], float(scores[row])) for row in nearest]
        return [(word, score) for word, score in found if word not in given][:topn]

    def save_word2vec_format(self, path: str | PathLike[str]) -> None:
        """All words of the vocabulary in word2vec's text format; whole or not at all."""
        with (
            scratch_for(Path(path)) as scratch,
            scratch.open("w", encoding="utf-8", newline="\n") as stream,
        ):
            stream.write(f"{len(self)} {self.vector_size}\n")
            for word, vector in zip(self.index_to_key, self.vectors, strict=True):
                # As many digits as it takes to read the same number again.
                stream.write(f"{word} {' '.join(map(str, vector))}\n")

    def _vectors_of(self, words: Sequence[str]) -> Vectors:
        if missing := [word for word in words if word not in self]:
            raise KeyError(f"{missing[0]!r} is not among the {len(self):,} words of the model")
        distinct = list(dict.fromkeys(words))
        rows = {word: row for row, word in enumerate(distinct)}
        parts = [self._static(distinct[i : i + _CHUNK]) for i in range(0, len(distinct), _CHUNK)]
        return np.concatenate(parts)[[rows[word] for word in words]]


def _listed(words: Words) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


_WINDOW_BYTES = 256 << 20  # of vectors that wait to be handed on
_ROWS_AROUND = 256  # sentences that one thread reads at a time


class Embedder(WordEmbedder):
    """A model ready to turn words into vectors. Its weights must not change while it is used."""

    def __init__(
        self,
        model: Model,
        *,
        device: str | None = None,
        precision: Precision = "float32",
        threads: int | None = None,
        fingerprint: str = "",
    ) -> None:
        if precision not in ("float32", "bfloat16"):
            raise ConfigError(f"precision={precision!r} is not one of 'float32', 'bfloat16'.")
        if threads is not None and threads < 1:
            raise ConfigError(f"threads={threads}: at least one is needed.")
        self.model = model
        self.device = choose_device(device)
        """Where the work is done: the device asked for, or the first there is of cuda, mps, cpu."""
        self.precision = precision
        self._fingerprint = fingerprint
        self._encode = SentenceEncoder(model, device=self.device, precision=precision)
        set_threads(threads)

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        *,
        device: str | None = None,
        precision: Precision = "float32",
        threads: int | None = None,
    ) -> "Embedder":
        """The embedder of the model in a folder, or of an installed one."""
        folder = model_folder(folder)
        return cls(
            Model.load(folder),
            device=device,
            precision=precision,
            threads=threads,
            fingerprint=sha256_of(folder / MANIFEST),
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model's manifest, which has those of its files."""
        assert self._fingerprint, "this model was not loaded from a folder"
        return self._fingerprint

    @property
    def preparation(self) -> Preparation | None:
        """How the text of the model's corpus became words."""
        return self.model.preparation

    def to(self, device: str) -> "Embedder":
        """The same embedder, working on another device from now on."""
        if (chosen := choose_device(device)) != self.device:
            self.device = chosen
            self._encode = SentenceEncoder(self.model, device=chosen, precision=self.precision)
            self.__dict__.pop("wv", None)  # it was made of the encoder before
        return self

    def __repr__(self) -> str:
        config = self.model.config
        return summary(
            "Embedder",
            f"{config.encoder.contextualizer.kind} trained as {config.objective.kind}",
            describe_layers(self.num_layers, self.dim),
            f"{self.precision} on {self.device}",
        )

    def _repr_html_(self) -> str:
        return html_table("Embedder", self.environment.items()) + self.model._repr_html_()

    @property
    def environment(self) -> Environment:
        """What decides the last bits of its vectors besides model, text and settings."""
        return describe(device=self.device, precision=self.precision)

    @property
    def num_layers(self) -> int:
        """Vectors for each word: layer 0 and those with context."""
        return self.model.config.encoder.num_layers

    @property
    def dim(self) -> int:
        """Dimensions of each vector."""
        return self.model.config.encoder.output_dim

    @property
    def max_length(self) -> int:
        """Words that are read at once, as in training. A longer sentence is read in chunks."""
        preparation = self.model.preparation
        field = CorpusConfig.model_fields["max_words"]
        longest: int = preparation.settings.max_words if preparation else field.default
        most = self.model.config.encoder.contextualizer.max_length
        return longest if most is None else min(longest, most - 2)  # BOS and EOS are not words

    def stream(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        layers: Layers = "all",
        batch_invariant: bool = False,
    ) -> Iterator[Vectors]:
        """(L, T, D) for each list of words, in order, in bounded memory; L = 1 for a single layer.

        A list longer than `max_length` is read in equal chunks, as a corpus would split it; its
        vectors come as one array. `truncation` says so.
        """
        checked = (check_words(words, index) for index, words in enumerate(sentences))
        return self._stream(
            checked, LayerChoice(layers, self.num_layers), batch_invariant=batch_invariant
        )

    @cached_property
    def wv(self) -> StaticVectors:
        """The words' vectors without context, in the manner of gensim: `embedder.wv["bank"]`."""
        contextualizer = self.model.config.encoder.contextualizer
        return StaticVectors(self.model, self._encode.static, contextualizer.dim)

    @property
    def reads_around(self) -> bool:
        """Whether `stream_context` can be asked: of two stacks of an LSTM, on a processor."""
        encoder = self.model.config.encoder
        is_lstm = isinstance(encoder.contextualizer, LstmConfig)
        return is_lstm and encoder.is_separate and self.device == "cpu"

    def stream_context(
        self, sentences: Iterable[Sequence[str]], spans: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[Vectors, Vectors]]:
        """For a span of words in each sentence, what each direction knows just before and after it.

        (D,) the top layer's forward half at the word before, its backward half at the word after;
        and layer 0 of the sentence (T, D / 2). Half the work of `stream`: nothing is read beyond
        the span.
        """
        checked = (check_words(words, index) for index, words in enumerate(sentences))
        pairs = zip(checked, spans, strict=True)
        while window := list(islice(pairs, SENTENCES)):
            # The longest first, or one thread would be left with them at the end.
            order = sorted(range(len(window)), key=lambda n: -len(window[n][0]))
            batches = [order[n : n + _ROWS_AROUND] for n in range(0, len(order), _ROWS_AROUND)]
            found: list[tuple[Vectors, Vectors] | None] = [None] * len(window)
            read = partial(self._read_around, window)
            for rows, vectors in zip(batches, in_parallel(read, batches), strict=True):
                for row, each in zip(rows, vectors, strict=True):
                    found[row] = each
            yield from (each for each in found if each is not None)

    def _read_around(
        self, window: Sequence[tuple[Sequence[str], tuple[int, int]]], rows: Sequence[int]
    ) -> list[tuple[Vectors, Vectors]]:
        words, places = zip(*(window[row] for row in rows), strict=True)
        states, static = self._encode.around(words, places, self.max_length)
        return list(zip(states, static, strict=True))

    def truncation(self, words: Sequence[str]) -> Truncation:
        """What of a sentence with these words is not read as it stands."""
        chunks = max(1, -(-len(words) // self.max_length))
        spelling = self.model.config.vocabulary
        kind, most = spelling.characters, spelling.max_characters - 2  # its begin and its end
        if kind == "none" or self.model.config.encoder.widest_filter == 0:
            return Truncation(chunks)
        long = [word for word in words if 4 * len(word) > most]  # no character has more bytes
        sizes = [len(word.encode()) if kind == "bytes" else len(word) for word in long]
        return Truncation(chunks, sum(max(0, size - most) for size in sizes))

    def _stream(
        self, sentences: Iterable[Sequence[str]], choice: LayerChoice, *, batch_invariant: bool
    ) -> Iterator[Vectors]:
        max_words = _WINDOW_BYTES // (4 * choice.num_layers * self.dim)
        for window in group_sentences(sentences, max_words=max_words):
            vectors = self._encode(
                window, choice, max_length=self.max_length, batch_invariant=batch_invariant
            )
            found = deque(vectors)
            while found:
                yield found.popleft()  # and forget it
