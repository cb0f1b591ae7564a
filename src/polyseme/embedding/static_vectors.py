"""A word's vector without context: layer 0 of a model, in the manner of gensim's KeyedVectors.

    embedder.wv["bank"]                            (D,)
    embedder.wv.most_similar("bank")               words and cosines
    embedder.wv.save_word2vec_format("bank.vec")   for every tool that reads word2vec's text format

One vector stands for all of a word's meanings. Where they matter, embed the word in its sentence.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np

from polyseme.display import summary
from polyseme.embedding.output import Vectors, normalized
from polyseme.errors import InputError
from polyseme.model import Model
from polyseme.storage.files import scratch_for

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
        is_word = isinstance(word, str) and bool(word)
        return is_word and (self._reads_any or word in self.key_to_index)

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

    @property
    def _reads_any(self) -> bool:
        return self._model.config.encoder.widest_filter > 0

    def _vectors_of(self, words: Sequence[str]) -> Vectors:
        if missing := [word for word in words if word not in self]:
            raise KeyError(f"{missing[0]!r} is not among the {len(self):,} words of the model")
        distinct = list(dict.fromkeys(words))
        rows = {word: row for row, word in enumerate(distinct)}
        parts = [self._static(distinct[i : i + _CHUNK]) for i in range(0, len(distinct), _CHUNK)]
        return np.concatenate(parts)[[rows[word] for word in words]]


def _listed(words: Words) -> list[str]:
    return [words] if isinstance(words, str) else list(words)
