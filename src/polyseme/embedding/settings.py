"""What a folder of vectors holds."""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from polyseme.config import Settings
from polyseme.devices import resolve_precision

Precision = Literal["float32", "bfloat16"]
Pooling = Literal["mean", "first"]
"""How a word's subword tokens become one vector."""
Layers = str | int | Sequence[float]
"""Which layers are wanted: 'all' keeps them apart; 'top', or a number, takes one; 'average', or a
weight for each, mixes them. One setting and not three, since only one of these can be had at a
time. Weights are taken as they are, and need not sum to one. A mix that is learnt is a task's.
"""


class VectorsConfig(Settings):
    """Which vectors are written, and how."""

    layers: str = "all"
    """Which layers: all, top, average, one number (0 is the word without context), or a weight for
    each layer separated by commas (0.2,0.3,0.5)."""
    words: tuple[str, ...] = ()
    """Only these words, written exactly so; sentences without them are passed over."""
    pca: int | None = Field(None, ge=1, le=65_536)
    """Reduce vectors to this many dimensions by PCA, fitted on a sample of them."""
    dtype: Literal["float16", "float32"] = "float16"
    """How numbers are written."""
    format: Literal["parquet", "allennlp-hdf5"] = "parquet"
    """Parquet, one row a word; or hdf5 as AllenNLP wrote it, one dataset a sentence."""
    precision: Precision | Literal["auto"] = "float32"
    """In which numbers are multiplied: bfloat16 is faster, and less exact in the third digit;
    `auto` takes it where the processor multiplies it in hardware, and the manifest tells."""
    batch_invariant: bool = False
    """The same bits for a sentence whatever it is embedded with; slower."""
    pooling: Pooling = "mean"
    """Of the subword tokens of a word, with an encoder of Hugging Face: their mean, or the first of
    them."""
    threads: int = Field(1, ge=1, le=1_024)
    """Threads of each worker. Another number of them can change last bits."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "VectorsConfig":
        if self.format == "allennlp-hdf5" and self.words:
            raise ValueError("allennlp-hdf5 holds whole sentences: choose words with parquet")
        _layers(self.layers)
        return self

    @cached_property
    def word_set(self) -> frozenset[str]:
        """The words to keep; empty: all."""
        return frozenset(self.words)

    @property
    def chosen_layers(self) -> Layers:
        """The layers as the embedder takes them."""
        return _layers(self.layers)

    @property
    def resolved_precision(self) -> Precision:
        """What `auto` comes to on this machine."""
        return resolve_precision(self.precision)

    def columns(self, num_layers: int) -> list[str]:
        """Names of the columns that hold vectors."""
        if self.chosen_layers != "all":
            return ["vector"]
        return [f"layer_{layer}" for layer in range(num_layers)]


def _layers(text: str) -> Layers:
    """A wish as typed: a word, a number, or weights with commas between them."""
    if text in ("all", "top", "average"):
        return text
    try:
        return [float(weight) for weight in text.split(",")] if "," in text else int(text)
    except ValueError as error:
        raise ValueError(
            f"{text!r} is no choice of layers: all, top, average, a number, or a weight for each "
            "layer with commas between them"
        ) from error
