"""What a folder of vectors holds."""

from collections.abc import Sequence
from functools import cached_property
from os import PathLike, fspath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from polyseme.config import Option, Settings, check_path
from polyseme.devices import resolve_precision

Precision = Literal["float32", "bfloat16"]


def _model_name(value: Any) -> Any:
    if isinstance(value, str | PathLike):
        check_path(fspath(value), may_be_remote=True)
        return fspath(value)
    return value


ModelName = Annotated[
    str | None,
    BeforeValidator(_model_name),
    Option(metavar="MODEL"),
    Field(
        description="The model: a folder, a name that `polyseme models` shows, or hf:FOLDER for a "
        "Hugging Face model. Default: the one that `polyseme models` shows for the language."
    ),
]
"""The setting `model` of a command that uses a model, and is about something else."""
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
    """Only these words, spelled exactly like this; sentences without them are skipped."""
    pca: int | None = Field(None, ge=1, le=65_536)
    """Reduce vectors to this many dimensions by PCA, fitted on a sample of them."""
    dtype: Literal["float16", "float32"] = "float16"
    """Data type of the vectors on disk."""
    precision: Precision | Literal["auto"] = "float32"
    """Precision of the computation: bfloat16 is faster, and less exact in the third digit; `auto`
    uses it where the hardware supports it, and the manifest records the choice."""
    batch_invariant: bool = False
    """Bitwise identical vectors whatever else is in the batch; slower."""
    pooling: Pooling = "mean"
    """Hugging Face encoders only: pool the subword tokens of a word by their mean, or take the
    first."""
    threads: int = Field(1, ge=1, le=1_024)
    """CPU threads per worker. Another number can change the last bits of the results."""

    @model_validator(mode="after")
    def _layers_are_known(self) -> "VectorsConfig":
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
            f"{text!r} is not a choice of layers: all, top, average, a number, or a weight for "
            "each layer, separated by commas"
        ) from error
