"""A group of sentences through the encoder: batches in, the vectors of each sentence out.

    in   sentences as lists of words, any number, any length
    out  for each sentence (K, T, D), special tokens dropped; K as many layers as were chosen

Sentences come in batches of about one length, long ones in chunks, each row with its way back;
memory is bounded by a group of sentences. Layer 0 of words met lately is remembered. A word's bits
depend on the word alone: it is always worked out among as many rows, of as many characters as its
own length asks for. So what is remembered changes speed and nothing else. Vectors that are not
finite never leave here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from polyseme.data.batch import (
    BOS,
    EOS,
    FIRST_ROW,
    Batch,
    Integers,
    WordTable,
    encode_words,
    pad,
    padded_length,
    with_special_tokens,
)
from polyseme.data.vocabulary import Vocabulary
from polyseme.embedding.word_embedder import LayerChoice, Vectors, is_finite
from polyseme.encoders.lstm import Lstm, run_to_last
from polyseme.errors import ModelError
from polyseme.model import Model
from polyseme.text.preprocessing import split_long

SENTENCES = 1024
"""Most sentences that are sorted together."""
ROWS, WORDS = 128, 4096
"""Most rows, and most places for words, in a batch."""
INVARIANT_ROWS = 8
"""Rows of every batch-invariant batch: more cost a single sentence more, fewer cost many more."""


@dataclass(frozen=True)
class Chunk:
    """Words `begin` to `end` of a sentence of the group: what the model reads at once."""

    sentence: int
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class ChunkBatch:
    """A batch, which of the group's distinct words it reads, and the chunk each of its rows is."""

    batch: Batch
    distinct: Tensor  # (U,) int64
    chunks: tuple[Chunk, ...]


def group_sentences(
    sentences: Iterable[Sequence[str]], *, max_words: int
) -> Iterator[list[Sequence[str]]]:
    """Groups of sentences; one that is longer than `max_words` is a group of its own."""
    group: list[Sequence[str]] = []
    num_words = 0
    for sentence in sentences:
        if group and (len(group) == SENTENCES or num_words + len(sentence) > max_words):
            yield group
            group, num_words = [], 0
        group.append(sentence)
        num_words += len(sentence)
    if group:
        yield group


class LengthSortedBatches:
    """Sentences that are embedded together, each distinct word once."""

    def __init__(self, sentences: Sequence[Sequence[str]], *, max_length: int) -> None:
        encoded = encode_words(sentences)
        self.distinct: list[str] = encoded.dictionary.to_pylist()
        """Its words, each once; row FIRST_ROW + n stands for word n."""
        self._chunks = [
            Chunk(number, *span)
            for number, sentence in enumerate(sentences)
            if len(sentence)
            for span in split_long(0, len(sentence), max_length)
        ]
        lengths = np.array([chunk.end - chunk.begin for chunk in self._chunks], np.int64)
        codes = encoded.indices.to_numpy().astype(np.int32) + FIRST_ROW
        self._flat = with_special_tokens(codes, lengths)
        self._lengths = lengths + 2
        self._starts: Integers = np.cumsum(self._lengths) - self._lengths

    def batches(self, *, batch_invariant: bool = False) -> Iterator[ChunkBatch]:
        """All chunks in batches, the longest first.

        `batch_invariant`: a batch has always as many rows, all of one length, so that the shape of
        every matrix product is known from a sentence's own length, and with it the order in which
        numbers are added up.
        """
        order = np.argsort(-self._lengths, kind="stable")
        begin = 0
        while begin < len(order):
            longest = int(self._lengths[order[begin]])
            if batch_invariant:
                alike = int(np.searchsorted(-self._lengths[order], -longest, side="right"))
                end = min(begin + INVARIANT_ROWS, alike)
                yield self._batch(order[begin:end], fill_to=INVARIANT_ROWS)
            else:
                end = begin + min(ROWS, max(1, WORDS // longest))
                yield self._batch(order[begin:end])
            begin = end

    def __len__(self) -> int:
        return len(self._chunks)

    def _batch(self, chosen: Integers, fill_to: int = 0) -> ChunkBatch:
        chunks = tuple(self._chunks[n] for n in chosen)
        filling = np.full(max(0, fill_to - len(chosen)), chosen[0])  # its vectors are not used
        chosen = np.concatenate([chosen, filling])
        lengths = self._lengths[chosen]
        matrix = pad(self._flat, self._starts[chosen], lengths)
        occurs = np.zeros(FIRST_ROW + len(self.distinct), np.bool_)
        occurs[matrix] = True
        occurs[0] = True
        distinct = np.flatnonzero(occurs)
        places = np.cumsum(occurs) - 1
        nothing = torch.empty(0, dtype=torch.int64)  # layer 0 is there already
        batch = Batch(
            torch.from_numpy(places[matrix]), torch.from_numpy(lengths), nothing, nothing[:, None]
        )
        return ChunkBatch(batch, torch.from_numpy(distinct), chunks)


_ROWS = 64  # fewer are slower for many words, more for one sentence
_WIDTHS = (16, 24)  # characters; and the most a spelling may have
_NUM_WORDS = 16_384
"""Of one generation; there are two, 25 MB with 192 dimensions. With 43,690, 1.4 instead of 2.2 of
100 running words are worked out again in three million of novels: 0.4 % less time."""

EmbedWords = Callable[[Tensor, Tensor], Tensor]


class WordEmbeddingCache:
    """Layer 0 of any words. Remembers those met lately, in two generations of bounded size."""

    def __init__(
        self, inputs: EmbedWords, vocabulary: Vocabulary, *, dim: int, device: str
    ) -> None:
        self._inputs, self._vocabulary, self._device = inputs, vocabulary, device
        self._capacity, self._dim = _NUM_WORDS, dim
        self._young, self._old = (_Generation(self._capacity, dim, device) for _ in range(2))
        self._lock = Lock()  # threads may share an embedder

    def __call__(self, words: Sequence[str]) -> Tensor:
        """(FIRST_ROW + N, D): padding, the special tokens and then these distinct words."""
        with self._lock:
            return self._look_up(words)

    def _look_up(self, words: Sequence[str]) -> Tensor:
        table = torch.empty(FIRST_ROW + len(words), self._dim, device=self._device)
        table[:FIRST_ROW] = self._special_tokens
        vectors = table[FIRST_ROW:]
        unknown = self._young.recall(words, np.arange(len(words)), vectors)
        fresh = self._old.recall(words, unknown, vectors)
        if len(fresh):
            missing = self._vocabulary.table_of(pa.array([words[n] for n in fresh], pa.string()))
            places = torch.from_numpy(fresh).to(self._device)
            vectors[places] = self._work_out(missing)[FIRST_ROW:]
        unknown = unknown[: self._capacity]
        if self._young.num_words + len(unknown) > self._capacity:
            self._old, self._young = self._young, self._old
            self._young.forget()
        self._young.add(words, unknown, vectors)
        return table

    @cached_property
    def _special_tokens(self) -> Tensor:
        return self._work_out(self._vocabulary.table_of(pa.array([], pa.string())))

    def _work_out(self, table: WordTable) -> Tensor:
        """Every row of a table (N, D), in chunks of one size, alike in width."""
        limit = table.char_ids.shape[1]
        widths = np.array([min(width, limit) for width in (*_WIDTHS, limit)])
        needed = [padded_length(int(length), limit) for length in table.char_lengths]
        classes = np.searchsorted(widths, needed)
        found = torch.empty(len(table.ids), self._dim, device=self._device)
        for number, width in enumerate(widths):
            chosen = np.flatnonzero(classes == number)
            for begin in range(0, len(chosen), _ROWS):
                rows = chosen[begin : begin + _ROWS]
                filled = np.zeros(_ROWS, np.int64)
                filled[: len(rows)] = rows
                ids = torch.from_numpy(table.ids[filled])
                char_ids = torch.from_numpy(table.char_ids[filled, :width].astype(np.int64))
                vectors = self._inputs(ids.to(self._device), char_ids.to(self._device))
                found[torch.from_numpy(rows).to(self._device)] = vectors[: len(rows)].float()
        return found


class _Generation:
    """Some words and their vectors, in memory that is taken once."""

    def __init__(self, capacity: int, dim: int, device: str) -> None:
        self._places: dict[str, int] = {}
        self._vectors = torch.empty(capacity, dim, device=device)

    @property
    def num_words(self) -> int:
        return len(self._places)

    def recall(self, words: Sequence[str], wanted: Integers, into: Tensor) -> Integers:
        """Write what is known of the wanted words; which of them are not known."""
        known = self._places
        places = np.fromiter((known.get(words[n], -1) for n in wanted), np.int64, len(wanted))
        is_known = places >= 0
        if is_known.any():
            here = torch.from_numpy(wanted[is_known]).to(into.device)
            into[here] = self._vectors[torch.from_numpy(places[is_known]).to(into.device)]
        return wanted[~is_known]

    def forget(self) -> None:
        self._places.clear()

    def add(self, words: Sequence[str], chosen: Integers, vectors: Tensor) -> None:
        begin = len(self._places)
        self._places.update((words[n], begin + k) for k, n in enumerate(chosen))
        rows = torch.from_numpy(chosen).to(vectors.device)
        self._vectors[begin : begin + len(chosen)] = vectors[rows]


class SentenceEncoder:
    """An encoder on its device, in its precision."""

    def __init__(self, model: Model, *, device: str, precision: str) -> None:
        self.device = device
        self._is_half = precision == "bfloat16"
        self._dim = model.config.encoder.output_dim
        self._encoder = model.network.encoder.to(device).eval()
        self._words = WordEmbeddingCache(
            self._encoder.inputs,
            model.vocabulary,
            dim=model.config.encoder.contextualizer.dim,
            device=device,
        )

    @torch.no_grad()
    def __call__(
        self,
        sentences: Sequence[Sequence[str]],
        choice: LayerChoice,
        *,
        max_length: int,
        batch_invariant: bool,
    ) -> list[Vectors]:
        """The vectors of each sentence; what has more than `max_length` words is read in chunks."""
        shapes = [(choice.num_layers, len(sentence), self._dim) for sentence in sentences]
        found: list[Vectors] = [np.empty(shape, np.float32) for shape in shapes]
        group = LengthSortedBatches(sentences, max_length=max_length)
        kind = self.device.partition(":")[0]
        with torch.autocast(kind, torch.bfloat16, enabled=self._is_half):
            table = self._words(group.distinct)
            for part in group.batches(batch_invariant=batch_invariant):
                self._write(part, table, choice, found)
        _check_finite(found)
        return found

    @torch.no_grad()
    def around(
        self, sentences: Sequence[Sequence[str]], spans: Sequence[tuple[int, int]], max_length: int
    ) -> tuple[Vectors, list[Vectors]]:
        """For one span of words in each sentence, what each direction knows next to it.

        (B, D) the top layer's forward half just before the span and its backward half just after
        it; and layer 0 of each sentence (T, D / 2). At most `max_length` words are read each way.
        """
        lstm = self._encoder.contextualizer
        assert isinstance(lstm, Lstm)
        encoded = encode_words(sentences)
        codes = encoded.indices.to_numpy().astype(np.int64) + FIRST_ROW
        ends = np.cumsum([len(sentence) for sentence in sentences])
        each = np.split(codes, ends[:-1])
        left = [
            np.concatenate([[BOS], rows[max(0, begin - max_length) : begin]])
            for rows, (begin, _) in zip(each, spans, strict=True)
        ]
        right = [
            np.concatenate([[EOS], rows[end : end + max_length][::-1]])
            for rows, (_, end) in zip(each, spans, strict=True)
        ]
        with torch.autocast("cpu", torch.bfloat16, enabled=self._is_half):
            table = self._words(encoded.dictionary.to_pylist())
            words, lengths = zip(*_padded(left, right), strict=True)
            states = run_to_last(lstm, table, words, lengths).float().numpy()
        static = table.float().numpy()
        _check_finite([states, static])
        return states, [static[rows] for rows in each]

    @torch.no_grad()
    def static(self, words: Sequence[str]) -> Vectors:
        """(N, D): layer 0 of words by themselves, once."""
        encoded = encode_words([words])
        kind = self.device.partition(":")[0]
        with torch.autocast(kind, torch.bfloat16, enabled=self._is_half):
            table = self._words(encoded.dictionary.to_pylist()).float().cpu().numpy()
        found: Vectors = table[encoded.indices.to_numpy() + FIRST_ROW]
        _check_finite([found])
        return found

    def _write(
        self, part: ChunkBatch, table: Tensor, choice: LayerChoice, found: list[Vectors]
    ) -> None:
        """Encode a batch, and put the vectors of its words where they belong."""
        distinct = table[part.distinct.to(self.device)]
        batch = part.batch.to(self.device)
        encoded = self._encoder.contextualize(distinct, batch, special_tokens=False)
        layers = [layer.float().cpu().numpy() for layer in choice(encoded.hidden_states)]
        for row, chunk in enumerate(part.chunks):
            into = found[chunk.sentence][:, chunk.begin : chunk.end]
            for number, layer in enumerate(layers):
                into[number] = layer[row, 1 : 1 + chunk.end - chunk.begin]  # position 0 is <S>


def _check_finite(found: Sequence[Vectors]) -> None:
    if not all(is_finite(vectors) for vectors in found):
        raise ModelError(
            "The model gives vectors that are not finite (NaN or infinity), so its weights are "
            "damaged or too large. Copy the model again from where it came."
        )


def _padded(*sides: Sequence[Integers]) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows of each side as one matrix, all as wide as the longest of any; and their lengths."""
    width = max(len(row) for rows in sides for row in rows)
    for rows in sides:
        matrix = np.zeros((len(rows), width), np.int64)
        for into, row in zip(matrix, rows, strict=True):
            into[: len(row)] = row
        yield torch.from_numpy(matrix), torch.tensor([len(row) for row in rows])
