"""What a task is fed, and what is gathered for it beforehand.

    in   `Given`   the numbers of some sentences, before any parameter is needed
    out  `Fed`     vectors at each place where a task takes some

A task sees `Fed` and nothing else, so it cannot tell static vectors from frozen or fine-tuned ones.
`Given` travels in the task's batches: it can be shared out among processes and moved to a device.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from polyseme.batches.batch import Batch


class Widths(NamedTuple):
    """Dimensions at each place; 0 where nothing is put."""

    first: int
    middle: int = 0
    last: int = 0


@dataclass(frozen=True, eq=False)
class Fed:
    """The vectors of a batch, zero where there is no word."""

    first: Tensor  # (B, T, D)
    """The task's input: x, ELMo, or [x; ELMo]."""
    mask: Tensor  # (B, T)
    """True at words."""
    middle: Tensor | None = None  # (B, T, D)
    """To be put beside what the task's first layer gives, as in TagLM."""
    last: Tensor | None = None  # (B, T, D)
    """To be put beside what the task's last layer gives."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What an encoder that is trained along reads: its own batch, marks and all."""

    batch: Batch
    """A row for each sentence, or for each piece of one that is too long to be read at once."""
    places: Tensor  # (B, T) int64
    """Where each word's vector comes out: row of the batch times its width, plus column."""

    def select(self, rows: Tensor, lengths: Tensor) -> "Reading":
        """The reading of these sentences, which have these lengths."""
        places = self.places[rows, : int(lengths.max())]
        width = self.batch.words.shape[1]
        pieces, which = torch.unique(places // width, return_inverse=True)
        batch = self.batch.select(pieces)
        return Reading(batch, which * batch.words.shape[1] + places % width)

    def to(self, device: str | torch.device) -> "Reading":
        """The same on another device."""
        return Reading(self.batch.to(device), self.places.to(device))


@dataclass(frozen=True, eq=False)
class Given:
    """Some sentences, gathered for a feed. Each part is there if the feed has a use for it."""

    lengths: Tensor  # (B,) int64
    """Words in each sentence; there are no marks."""
    spelt: Batch | None = None
    """The distinct words, for tables and characters; `ids` are those of the feed's table."""
    layers: Tensor | None = None  # (B, T, L, D), float16 or float32
    """What a frozen encoder has given."""
    reading: Reading | None = None
    """What an encoder that learns will read."""
    units: Batch | None = None
    """The distinct characters that labels stand at, where they stand at characters."""

    @property
    def mask(self) -> Tensor:
        """(B, T) True at words."""
        place = torch.arange(int(self.lengths.max()), device=self.lengths.device)
        return place < self.lengths[:, None]

    @property
    def num_words(self) -> int:
        """Words of all sentences."""
        return int(self.lengths.sum())

    def select(self, rows: Tensor) -> "Given":
        """These sentences only, as if they had been gathered alone."""
        lengths = self.lengths[rows]
        return Given(
            lengths,
            None if self.spelt is None else self.spelt.select(rows),
            None if self.layers is None else self.layers[rows, : int(lengths.max())],
            None if self.reading is None else self.reading.select(rows, lengths),
            None if self.units is None else self.units.select(rows),
        )

    def to(self, device: str | torch.device) -> "Given":
        """The same on another device."""
        return Given(
            self.lengths.to(device),
            None if self.spelt is None else self.spelt.to(device),
            None if self.layers is None else self.layers.to(device),
            None if self.reading is None else self.reading.to(device),
            None if self.units is None else self.units.to(device),
        )
