"""What a task reads, and what is looked up for it beforehand.

    in   `Sentences`      a data set's words, each distinct spelling once
    then `FeatureBatch`   the numbers of some sentences, before any parameter is needed
    out  `TaskInputs`     vectors at each place where a task takes some

A task sees `TaskInputs` and nothing else, so it cannot tell static vectors from frozen or
fine-tuned ones. `FeatureBatch` travels in the task's batches: it can be shared out among processes
and moved to a device.

One vector per word from all of an encoder's layers, weighted by how useful each is; and dropout.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.data.batch import FIRST_ROW, Batch, Integers, encode_words
from polyseme.embedding.word_embedder import check_words
from polyseme.errors import InputError, ModelError


class Sentences:
    """Sentences as lists of words; in memory, as the labels beside them are."""

    def __init__(self, sentences: Iterable[Sequence[str]]) -> None:
        self.words = [check_words(words, index) for index, words in enumerate(sentences)]
        if not self.words:
            raise InputError("There are no sentences in the data.")
        for index, words in enumerate(self.words):
            if not words:
                raise InputError(f"Sentence {index} has no words. Leave it out of the data.")
        self.lengths: Integers = np.array([len(words) for words in self.words], np.int64)
        self.starts: Integers = np.cumsum(self.lengths) - self.lengths
        encoded = encode_words(self.words)
        self.distinct: pa.StringArray = encoded.dictionary
        """Every spelling once, in the order of appearance."""
        self.rows = encoded.indices.to_numpy().astype(np.int32) + FIRST_ROW
        """All sentences one after another; row FIRST_ROW + n stands for spelling n."""

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, eq=False)
class EncoderInput:
    """What an encoder that is fine-tuned reads: its own batch, special tokens and all."""

    batch: Batch
    """A row for each sentence, or for each piece of one that is too long to be read at once."""
    places: Tensor  # (B, T) int64
    """Where each word's vector comes out: row of the batch times its width, plus column."""

    def select(self, rows: Tensor, lengths: Tensor) -> "EncoderInput":
        """The input of these sentences, which have these lengths."""
        places = self.places[rows, : int(lengths.max())]
        width = self.batch.words.shape[1]
        pieces, which = torch.unique(places // width, return_inverse=True)
        batch = self.batch.select(pieces)
        return EncoderInput(batch, which * batch.words.shape[1] + places % width)

    def align(self, word_of: Tensor) -> "EncoderInput":
        """The same input, with each character's vector (B, T) where its word's comes out."""
        return EncoderInput(self.batch, self.places.gather(1, word_of))

    def read(self, encode: Callable[..., Any]) -> Tensor:
        """(L, B, T, D) of the words, by the encoder."""
        each = encode(self.batch).hidden_states
        shape = (*self.places.shape, each[0].shape[-1])
        return torch.stack(
            [layer.flatten(0, 1)[self.places.flatten()].view(shape) for layer in each]
        )

    def to(self, device: str | torch.device) -> "EncoderInput":
        """The same on another device."""
        return EncoderInput(self.batch.to(device), self.places.to(device))


@dataclass(frozen=True, eq=False)
class SubwordInput:
    """What an encoder of Hugging Face that is fine-tuned reads, and each word's tokens in it."""

    ids: Tensor  # (R, S) int64
    """A row for each sentence, or for each window of one that is too long to be read at once."""
    mask: Tensor  # (R, S) int64, 0 at padding
    segments: Tensor | None  # (R, S) int64
    places: Tensor  # (B, T, K) int64
    """For each word its tokens: 1 + row times width + column; 0 where it has fewer."""

    def select(self, rows: Tensor, lengths: Tensor) -> "SubwordInput":
        """The input of these sentences, which have these lengths."""
        places, width = self.places[rows, : int(lengths.max())], self.ids.shape[1]
        is_token = places > 0
        used, which = torch.unique((places - 1)[is_token] // width, return_inverse=True)
        moved = torch.zeros_like(places)
        moved[is_token] = 1 + which * width + (places - 1)[is_token] % width
        segments = None if self.segments is None else self.segments[used]
        return SubwordInput(self.ids[used], self.mask[used], segments, moved)

    def align(self, word_of: Tensor) -> "SubwordInput":
        """The same input, with each character's vector (B, T) where its word's comes out."""
        rows = torch.arange(len(word_of), device=word_of.device)[:, None]
        return replace(self, places=self.places[rows, word_of])

    def read(self, encode: Callable[..., Any]) -> Tensor:
        """(L, B, T, D): the mean of each word's tokens; zeros for a word that has none."""
        bags = self.places.flatten(0, 1)  # (B * T, K)
        found = []
        for layer in encode(self.ids, self.mask, self.segments):
            tokens = functional.pad(layer.flatten(0, 1), (0, 0, 1, 0))  # row 0 is no token
            means = functional.embedding_bag(bags, tokens, mode="mean", padding_idx=0)
            found.append(means.view(*self.places.shape[:2], -1))
        return torch.stack(found)

    def to(self, device: str | torch.device) -> "SubwordInput":
        """The same on another device."""
        segments = None if self.segments is None else self.segments.to(device)
        places = self.places.to(device)
        return SubwordInput(self.ids.to(device), self.mask.to(device), segments, places)


@dataclass(frozen=True, eq=False)
class FeatureBatch:
    """Some sentences, gathered for `Embeddings`. Each part is there if they have a use for it."""

    lengths: Tensor  # (B,) int64
    """Words in each sentence; there are no special tokens."""
    words: Batch | None = None
    """The distinct words, for table and character CNN; `ids` are those of the table."""
    layers: Tensor | None = None  # (B, T, L, D), float16 or float32
    """What a frozen encoder has given."""
    encoder_input: EncoderInput | SubwordInput | None = None
    """What a fine-tuned encoder will read."""
    characters: Batch | None = None
    """The distinct characters, where labels stand at characters."""

    @property
    def mask(self) -> Tensor:
        """(B, T) True at words."""
        place = torch.arange(int(self.lengths.max()), device=self.lengths.device)
        return place < self.lengths[:, None]

    @property
    def num_words(self) -> int:
        """Words of all sentences."""
        return int(self.lengths.sum())

    def select(self, rows: Tensor) -> "FeatureBatch":
        """These sentences only, as if they had been gathered alone."""
        lengths = self.lengths[rows]
        return FeatureBatch(
            lengths,
            None if self.words is None else self.words.select(rows),
            None if self.layers is None else self.layers[rows, : int(lengths.max())],
            None if self.encoder_input is None else self.encoder_input.select(rows, lengths),
            None if self.characters is None else self.characters.select(rows),
        )

    def to(self, device: str | torch.device) -> "FeatureBatch":
        """The same on another device."""
        parts = (getattr(self, each.name) for each in fields(self))
        there: list[Any] = [None if part is None else part.to(device) for part in parts]
        return FeatureBatch(*there)


class InputDims(NamedTuple):
    """Dimensions of `TaskInputs`; 0 where nothing is inserted."""

    input: int
    after_first_layer: int = 0
    output: int = 0


@dataclass(frozen=True, eq=False)
class TaskInputs:
    """The vectors of a batch, zero where there is no word."""

    input: Tensor  # (B, T, D)
    """The task's input: x, ELMo, or [x; ELMo]."""
    mask: Tensor  # (B, T)
    """True at words."""
    after_first_layer: Tensor | None = None  # (B, T, D)
    """To be concatenated with what the task's first layer gives, as in TagLM."""
    output: Tensor | None = None  # (B, T, D)
    """To be concatenated with what the task's last layer gives."""


_LEVELS = 256  # values of a byte
_BYTES = 8  # in what is drawn at once


class ByteDropout(nn.Module):
    """Dropout that draws one random byte for each number, so that shares are multiples of 1/256.

    On a processor torch draws a whole random word for each, one after the other, which takes longer
    than all else between a cache and a task.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.out = round(share * _LEVELS)  # of so many values of a byte

    def forward(self, vectors: Tensor) -> Tensor:
        """Any shape. Chance is torch's, so that a seed repeats it."""
        if not (self.training and self.out):
            return vectors
        drawn = torch.empty(-(-vectors.numel() // _BYTES), dtype=torch.int64, device=vectors.device)
        drawn.random_(-(2**63), None)  # all 64 bits; without bounds it would leave out the sign
        is_kept = drawn.view(torch.uint8)[: vectors.numel()].view(vectors.shape) >= self.out
        return vectors * (is_kept * (_LEVELS / (_LEVELS - self.out)))


class MixConfig(Settings):
    """How the layers become one vector."""

    layer: int | None = None
    """Use one layer instead of a mix: 0 is the word without context, -1 the top. Gamma is still
    learned."""
    layer_norm: bool = False
    """Layer normalization of each layer's vector of each word first (mean 0, variance 1), so that
    no layer weighs more because its numbers are larger."""
    penalty: float = Field(0.0, ge=0)
    """Regularization of the weights towards the plain average: this times the sum of squared
    logits is added to the task's loss (ELMo's lambda)."""
    dropout: float = Field(0.5, ge=0, lt=1)
    """Dropout on the mixed vector in training."""


class LayerMix(nn.Module):
    """A learned, weighted sum of layers. Starts as their plain average."""

    def __init__(self, layers: int, config: MixConfig) -> None:
        super().__init__()
        self.config, self.num_layers = config, layers
        if config.layer is not None and not -layers <= config.layer < layers:
            raise ModelError(
                f"mix.layer = {config.layer}, but the encoder gives {layers} layers. Choose one "
                f"from 0 to {layers - 1}, or -1 for the top."
            )
        # Zeros, not ones: softmax turns equal logits into an average either way, but zeros
        # leave the penalty nothing to pull on, so it draws the mix towards the average.
        self.logits = nn.Parameter(torch.zeros(layers)) if config.layer is None else None
        self.gamma = nn.Parameter(torch.ones(()))
        self.dropout = ByteDropout(config.dropout)

    def forward(self, layers: Tensor) -> Tensor:
        """(L, B, T, D) -> (B, T, D)"""
        if len(layers) != self.num_layers:
            raise ModelError(
                f"This mix was trained on {self.num_layers} layers but the encoder gives "
                f"{len(layers)}. Train a new mix, or load the encoder it was trained with."
            )
        if self.logits is None:
            assert self.config.layer is not None
            mixed = self._normalize(layers[self.config.layer])
        else:
            weights = self.logits.softmax(dim=0)  # (L,), sums to one
            # Not einsum: it would multiply matrices, whose last bits depend on all rows together.
            parts = [weights[k] * self._normalize(layer) for k, layer in enumerate(layers)]
            mixed = sum(parts[1:], parts[0])
        scaled: Tensor = self.dropout(self.gamma * mixed)
        return scaled

    def _normalize(self, layer: Tensor) -> Tensor:
        """Each word by itself. AllenNLP and bilm-tf took one mean over the whole batch, so that a
        word's vector depended on the sentences beside it."""
        if not self.config.layer_norm:
            return layer
        return functional.layer_norm(layer, layer.shape[-1:])

    def penalty(self) -> Tensor:
        """What the task adds to its loss for weights far from the average."""
        if self.logits is None:
            return self.gamma.new_zeros(())
        return self.config.penalty * self.logits.square().sum()

    def weights(self) -> list[float]:
        """The weight of each layer; they add up to 1."""
        if self.logits is None:
            assert self.config.layer is not None
            chosen = self.config.layer % self.num_layers
            return [float(layer == chosen) for layer in range(self.num_layers)]
        weights: list[float] = self.logits.detach().double().softmax(dim=0).tolist()
        return weights
