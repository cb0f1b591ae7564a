"""Any encoder of Hugging Face as a `WordEmbedder`: words in, vectors of whole words out.

    in   sentences as lists of words, or texts if it is told how words are found in them
    out  every layer's vectors of every word: the mean of its subword tokens, or the first of them

Rows of a batch are equally long, so there is no padding that could change a vector. A sentence that
is longer than the encoder's positions is read in windows that overlap (`windows_of`). A word that
the tokenizer has no token for gets zeros, and is counted in `truncation`.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import NamedTuple, get_args

import numpy as np
import torch

from polyseme.data.batch import Integers
from polyseme.devices import choose_device, set_threads
from polyseme.display import describe_layers, html_table, summary
from polyseme.embedding.hf.folder import HfFolder
from polyseme.embedding.hf.network import (
    Subwords,
    TokenWindow,
    load_network,
    load_tokenizer,
    windows_of,
)
from polyseme.embedding.sentence_encoder import ROWS, WORDS, group_sentences
from polyseme.embedding.settings import Layers, Pooling, Precision
from polyseme.embedding.word_embedder import (
    LayerChoice,
    Truncation,
    Vectors,
    WordEmbedder,
    check_words,
    is_finite,
)
from polyseme.encoders.environment import Environment, describe
from polyseme.errors import ConfigError, ModelError
from polyseme.text.preprocessing import Preparation

_WINDOW_BYTES = 256 << 20  # of vectors that wait to be handed on


class _Row(NamedTuple):
    """A window of a sentence, as the encoder reads it."""

    sentence: int
    window: TokenWindow
    ids: list[int]


class HfEmbedder(WordEmbedder):
    """An encoder of Hugging Face ready to turn words into vectors. It is not trained."""

    def __init__(
        self,
        folder: HfFolder,
        *,
        device: str | None = None,
        precision: Precision = "float32",
        threads: int | None = None,
        pooling: Pooling = "mean",
        preparation: Preparation | None = None,
    ) -> None:
        if precision not in get_args(Precision):
            raise ConfigError(f"precision={precision!r} is not one of 'float32', 'bfloat16'.")
        if pooling not in get_args(Pooling):
            raise ConfigError(f"pooling={pooling!r} is not one of 'mean', 'first'.")
        self.device = choose_device(device)
        """Where the work is done: the device asked for, or the first there is of cuda, mps, cpu."""
        self.precision, self.pooling = precision, pooling
        set_threads(threads)
        self._fingerprint = folder.fingerprint(pooling)
        self._preparation = preparation
        self._network = load_network(folder, device=self.device).requires_grad_(False)
        self._tokenize = load_tokenizer(folder, self._network)

    def to(self, device: str) -> "HfEmbedder":
        """The same embedder, working on another device from now on."""
        self.device = choose_device(device)
        self._network.to(self.device)
        return self

    def __repr__(self) -> str:
        size = describe_layers(self.num_layers, self.dim)
        return summary("HfEmbedder", size, f"{self.precision} on {self.device}")

    def _repr_html_(self) -> str:
        return html_table(repr(self), self.environment.items())

    @property
    def num_layers(self) -> int:
        """Vectors for each word: layer 0, the sum of all that goes in, and those with context."""
        return self._network.num_layers

    @property
    def dim(self) -> int:
        """Dimensions of each vector."""
        return self._network.dim

    @property
    def max_length(self) -> int:
        """Subword tokens that are read at once."""
        return self._tokenize.max_tokens

    @property
    def fingerprint(self) -> str:
        """Hash of weights, settings, tokenizer and pooling."""
        return self._fingerprint

    @property
    def environment(self) -> Environment:
        """What decides the last bits of its vectors besides folder, text and settings."""
        return hf_environment(device=self.device, precision=self.precision)

    @property
    def preparation(self) -> Preparation | None:
        """How texts become words, if it was told how."""
        return self._preparation

    def truncation(self, words: Sequence[str]) -> Truncation:
        """What of a sentence with these words is not read as it stands."""
        [subwords] = self._tokenize([words])
        chunks = len(windows_of(subwords.counts, self.max_length))
        return Truncation(chunks, subwords.unread_characters, subwords.num_unread)

    def stream(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        layers: Layers = "all",
        batch_invariant: bool = False,
    ) -> Iterator[Vectors]:
        """(L, T, D) for each list of words, in order, in bounded memory; L = 1 for a single layer.

        `batch_invariant`: each window by itself, so that its bits depend on nothing else.
        """
        choice = LayerChoice(layers, self.num_layers)
        checked = (check_words(words, index) for index, words in enumerate(sentences))
        max_words = _WINDOW_BYTES // (4 * choice.num_layers * self.dim)
        return (
            vectors
            for group in group_sentences(checked, max_words=max_words)
            for vectors in self._vectors(group, choice, rows=1 if batch_invariant else ROWS)
        )

    def _vectors(
        self, sentences: Sequence[Sequence[str]], choice: LayerChoice, *, rows: int
    ) -> list[Vectors]:
        """The vectors of each of some sentences."""
        subwords = self._tokenize(sentences)
        shapes = [(choice.num_layers, len(each.counts), self.dim) for each in subwords]
        found: list[Vectors] = [np.zeros(shape, np.float32) for shape in shapes]
        for batch in _batches(self._rows(subwords), rows):
            layers = self._layers(batch, choice)
            for number, row in enumerate(batch):
                vectors = [layer[number] for layer in layers]
                self._write(row, subwords[row.sentence], vectors, found[row.sentence])
        if not all(map(is_finite, found)):
            raise ModelError(
                "The model gives vectors that are not finite (NaN or infinity), so its weights are "
                "damaged or too large. Copy the model again from where it came."
            )
        return found

    def _rows(self, subwords: Sequence[Subwords]) -> Iterator[_Row]:
        for number, each in enumerate(subwords):
            if len(each.ids):
                for window in windows_of(each.counts, self.max_length):
                    yield _Row(number, window, each.row(window))

    def _layers(self, batch: Sequence[_Row], choice: LayerChoice) -> list[Vectors]:
        """The layers that were chosen, (B, S, D) each, special tokens among them."""
        ids = torch.tensor([row.ids for row in batch], device=self.device)  # (B, S)
        kind, is_half = self.device.partition(":")[0], self.precision == "bfloat16"
        with torch.no_grad(), torch.autocast(kind, torch.bfloat16, enabled=is_half):
            layers = choice(self._network(ids))
        return [layer.float().cpu().numpy() for layer in layers]

    def _write(
        self, row: _Row, subwords: Subwords, layers: Sequence[Vectors], into: Vectors
    ) -> None:
        """Put together the tokens (S, D) of the words that are taken from a window."""
        begin, _, first, last = row.window
        counts = subwords.counts[first:last]
        words = np.flatnonzero(counts)  # those without a token stay zeros
        if not len(words):
            return
        inside = len(subwords.before) + int(subwords.counts[begin:first].sum())
        starts: Integers = inside + (np.cumsum(counts) - counts)[words]
        stop = inside + int(counts.sum())
        for number, layer in enumerate(layers):
            if self.pooling == "first":
                into[number, first + words] = layer[starts]
            else:
                sums = np.add.reduceat(layer[:stop], starts, axis=0)
                into[number, first + words] = sums / counts[words, None].astype(np.float32)


def _batches(rows: Iterable[_Row], most: int) -> Iterator[list[_Row]]:
    """Rows of equal length together, the longest first."""
    by_length: dict[int, list[_Row]] = {}
    for row in rows:
        by_length.setdefault(len(row.ids), []).append(row)
    for length in sorted(by_length, reverse=True):
        alike = by_length[length]
        size = min(most, max(1, WORDS // length))
        yield from (alike[at : at + size] for at in range(0, len(alike), size))


def hf_environment(*, device: str, precision: str, threads: int | None = None) -> Environment:
    """What decides last bits: of ours, all but the kernel; and the libraries that do the work."""
    ours = describe(device=device, precision=precision, threads=threads)
    libraries = {name: version(name) for name in ("transformers", "tokenizers")}
    return {**ours, "kernel": "none", **libraries}
