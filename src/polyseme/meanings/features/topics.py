"""What a corpus's words are about, learned from the corpus itself: the topic of a use.

    in   a corpus; then uses of a word in it
    out  (N, D) for each use what its sentence and its neighbours are about, and what the words are
         about that the model expects in its place

Words that occur in the same passages get like vectors: latent semantic analysis (Deerwester et al.,
1990), TF-IDF of passages, in few dimensions. It takes seconds, needs no model, and knows the texts
at hand, which a model trained on others may not. A use's topic is the weighted mean of the words
around it, rare words counting more (Arora et al., 2017). The word itself is left out wherever it
occurs, so that a topic says nothing of which word it is.
"""

import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polyseme.devices import one_thread
from polyseme.meanings.concordance.search import every_group
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.processes import python_process
from polyseme.storage.parquet import read_table, write_table
from polyseme.text.corpus import Corpus, damage_explained, words_of
from polyseme.text.shards import ShardWords

DIM = 128
_MOST_WORDS = 30_000  # that have a vector, the most frequent
_FEWEST = 5  # occurrences of a word that has one
_MOST_READ = 4_000_000  # words of the corpus that are learned from, row groups taken evenly
_PASSAGE = 60  # words
_SIF = 1e-4  # Arora et al. (2017): a word counts a / (a + its share of all words)
_AROUND, _AROUND_WEIGHT = 2, 0.7  # sentences on either side, and what their words count
_SUBSTITUTES = 30  # of a use, the best, whose topics are added up
_POWER_ITERATIONS = 4
_MANY = 200_000  # words of a corpus of which learning takes memory worth a process of its own

RowGroup = tuple[list[str], Any]
"""Its distinct words in lower case, and its running words as their numbers."""


@dataclass(frozen=True, eq=False)
class Topics:
    """A vector for each of the frequent words of a corpus, in lower case."""

    words: list[str]
    vectors: npt.NDArray[np.float16]  # (V, D) of length one times the word's weight

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @classmethod
    def learn(cls, corpus: Corpus) -> "Topics | None":
        """From up to four million words of the corpus; None if it has too few to tell."""
        counts, read = _read(corpus)
        words = sorted(
            (word for word, count in counts.items() if count >= _FEWEST),
            key=lambda word: (-counts[word], word),
        )[:_MOST_WORDS]
        if len(words) <= 2 * DIM:
            return None
        with one_thread():
            vectors = _latent(words, read)
        shares = np.array([counts[word] for word in words]) / counts.total()
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        weights = (_SIF / (_SIF + shares))[:, None]
        # As they are stored, so that those read again are the same.
        return cls(words, (vectors / np.maximum(lengths, 1e-9) * weights).astype(np.float16))

    def added_to(self, features: UseFeatures, uses: Uses, words: Sequence[str]) -> UseFeatures:
        """Features with the topics of uses and, if there are substitutes, of those.

        `words`: what the numbers of substitutes stand for.
        """
        expected = None
        if features.substitutes is not None:
            best, places = np.unique(features.substitutes[:, :_SUBSTITUTES], return_inverse=True)
            numbers = np.array(
                [self._numbers.get(words[word].lower(), -1) for word in best.tolist()], np.int64
            )
            vectors = self.vectors[numbers].astype(np.float32)
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
            vectors[numbers < 0] = 0  # a word without a vector counts nothing
            expected = np.zeros((len(features.substitutes), vectors.shape[1]), np.float32)
            for column in places.reshape(len(expected), -1).T:
                expected += vectors[column]
        return replace(features, topic=self.of_uses(uses), expected=expected)

    def of_uses(self, uses: Uses) -> Floats:
        """(N, D); zeros where no word near a use has a vector."""
        from scipy.sparse import csr_matrix

        spans, sentences = uses.spans.tolist(), uses.sentences()
        own = {
            word.lower()
            for words, (begin, end) in zip(sentences, spans, strict=True)
            for word in words[begin:end]
        }
        left_out = {self._numbers[word] for word in own if word in self._numbers}
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        around = uses.words_around(_AROUND) if uses.corpus else [()] * len(sentences)
        for row, (near, far) in enumerate(zip(sentences, around, strict=True)):
            for words, weight in ((near, 1.0), (far, _AROUND_WEIGHT)):
                each = [self._numbers.get(word.lower(), -1) for word in words]
                kept = [number for number in each if number >= 0 and number not in left_out]
                rows += [row] * len(kept)
                columns += kept
                values += [weight] * len(kept)
        used, places = np.unique(np.array(columns, np.int64), return_inverse=True)
        shape = (len(sentences), len(used))
        # Entries of one word are added up in their order: the same, whatever the other rows.
        sums = csr_matrix((values, (rows, places)), shape=shape) @ self.vectors[used].astype(
            np.float32
        )
        found: Floats = sums.astype(np.float32)
        return found

    def save(self, path: Path) -> None:
        """As a table of words and vectors that other tools can read."""
        vectors = pa.FixedSizeListArray.from_arrays(
            pa.array(self.vectors.ravel()), self.vectors.shape[1]
        )
        write_table(pa.table({"word": pa.array(self.words), "vector": vectors}), path)

    @classmethod
    def load(cls, path: Path) -> "Topics":
        """What was saved."""
        with damage_explained(path):
            table = read_table(path, ["word", "vector"]).combine_chunks()
            vectors = table["vector"].combine_chunks().flatten().to_numpy()
            found = vectors.reshape(len(table), -1).astype(np.float16)
            return cls(table["word"].to_pylist(), found)


def learn_aside(folder: Path) -> Topics | None:
    """Those of the corpus in a folder, learned in a process that ends, if there is much to read."""
    corpus = Corpus.open(folder)
    if corpus.read_stats["words"] < _MANY:
        return Topics.learn(corpus)
    with TemporaryDirectory(prefix="polyseme-") as folder_name:
        path = Path(folder_name) / "topics.parquet"
        command = python_process(__name__, "learn_into", str(folder), str(path))
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)  # noqa: S603 - this same interpreter
        except (OSError, subprocess.SubprocessError):
            return Topics.learn(corpus)  # no room for a process; or this says what is wrong
        return Topics.load(path) if path.exists() else None


def learn_into(folder: str, path: str) -> None:
    """What that process does; without enough words there will be no file."""
    topics = Topics.learn(Corpus.open(Path(folder)))
    if topics is not None:
        topics.save(Path(path))


def _read(corpus: Corpus) -> tuple[Counter[str], list[RowGroup]]:
    """Counts of words in lower case, and the words of each row group that is learned from."""
    step = max(1, -(-int(corpus.read_stats["words"]) // _MOST_READ))
    counts: Counter[str] = Counter()
    read: list[RowGroup] = []
    for _, path, [group] in every_group(corpus, step):
        with damage_explained(words_of(path)):
            words = ShardWords(words_of(path))[group]
            spelled = [word.lower() for word in words.spell()]
            is_word = np.array([any(map(str.isalpha, word)) for word in spelled], np.bool_)
            codes = words.codes[is_word[words.codes]]
        for code, count in enumerate(np.bincount(codes, minlength=len(spelled)).tolist()):
            if count:
                counts[spelled[code]] += count
        read.append((spelled, codes))
    return counts, read


def _latent(words: Sequence[str], read: Sequence[RowGroup]) -> Floats:
    """(V, D) by TF-IDF of words in passages."""
    from scipy.sparse import coo_matrix, csr_matrix, diags

    numbers = {word: number for number, word in enumerate(words)}
    rows, columns, first = [], [], 0
    for spelled, codes in read:
        known = np.array([numbers.get(word, -1) for word in spelled], np.int64)[codes]
        known = known[known >= 0]
        rows.append(first + np.arange(len(known)) // _PASSAGE)
        columns.append(known)
        first += -(-len(known) // _PASSAGE)
    cells = np.concatenate(rows), np.concatenate(columns)
    matrix = csr_matrix(
        coo_matrix((np.ones(len(cells[0]), np.float32), cells), shape=(first, len(words)))
    )
    matrix.data[:] = 1  # a passage has a word or not
    in_passages = np.maximum(np.asarray(matrix.sum(axis=0)).ravel(), 1)
    matrix = csr_matrix(matrix @ diags(np.log(first / in_passages).astype(np.float32)))
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    matrix = csr_matrix(diags((1 / np.maximum(lengths, 1e-9)).astype(np.float32)) @ matrix)
    components = principal_components(matrix, DIM, np.random.default_rng(1))
    strengths = np.linalg.norm(matrix @ components.T, axis=0)
    vectors: Floats = components.T * np.sqrt(strengths)
    return vectors


def principal_components(matrix: Any, dim: int, random: np.random.Generator) -> Floats:
    """(dim, W): the largest right singular vectors of a sparse matrix (N, W).

    By random projections (Halko et al., 2011): no library that takes seconds to import.
    """
    start = random.normal(size=(matrix.shape[1], min(dim + 10, *matrix.shape)))
    found: Floats = start.astype(np.float32)
    for _ in range(_POWER_ITERATIONS):
        found = matrix.T @ (matrix @ np.linalg.qr(found)[0])
    basis = np.linalg.qr(matrix @ found)[0]  # (N, K)
    components: Floats = np.linalg.svd((matrix.T @ basis).T, full_matrices=False)[2][:dim]
    return components
