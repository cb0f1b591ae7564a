"""The JSON beside old weights, in its own words, and what it means as settings of ours.

    in   options.json of bilm-tf and AllenNLP, or an architecture file of ELMoForManyLangs
    out  options whose every number is bounded, so that nothing is made too large on their word

Keys nobody knows are accepted and told (`unknown_keys`): the programs of the time passed over them
and published files carry many. Whether they changed the model, its tensors tell: one that no ELMo
has is refused.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from polyseme.config import AnySettings, Settings, build
from polyseme.errors import ConfigError, ModelError
from polyseme.limits import parse_json, read_text

LARGEST_FILE = 1 << 20
"""Bytes of options.json or an architecture file."""
_MANY = 64  # layers, highway layers or kinds of filters: far beyond any model there is
_WIDE = 1 << 16
_TRAINING_KEYS = {
    *("bidirectional", "dropout", "all_clip_norm_val", "n_epochs", "n_train_tokens", "batch_size"),
    *("n_tokens_vocab", "unroll_steps", "n_negative_samples_batch", "learning_rate"),
    *("sample_softmax", "share_embedding_softmax", "reverse", "projection_after_highway"),
    "classifier",
}

Clip = Annotated[
    float | None, Field(gt=0, allow_inf_nan=False), BeforeValidator(lambda v: v or None)
]
"""A bound; 0, false and null all mean none."""
FilterPair = tuple[Annotated[int, Field(ge=1, le=7)], Annotated[int, Field(ge=1, le=_WIDE)]]
"""How wide in characters, and how many."""


class _Part(Settings):
    model_config = ConfigDict(extra="allow")


class LstmOptions(_Part):
    """The layers with context."""

    dim: int = Field(ge=1, le=_WIDE)
    """Memory cells in each layer and direction."""
    projection_dim: int = Field(ge=1, le=_WIDE)
    """Output dimension of one direction."""
    n_layers: int = Field(ge=1, le=_MANY)
    """How many layers."""
    cell_clip: Clip = None
    """Bound on the cells."""
    proj_clip: Clip = None
    """Bound on the projected outputs."""
    use_skip_connections: bool = False
    """Whether each layer's input is added to its output, from the second on."""

    def contextualizer(self, *, projected: bool, residual: bool) -> dict[str, Any]:
        """As settings of ours. Only what is projected is clipped, as TensorFlow's cell has it."""
        return {
            "kind": "lstm",
            "num_layers": self.n_layers,
            "proj_size": self.projection_dim,
            "hidden_size": self.dim if projected else None,
            "cell_clip": self.cell_clip,
            "output_clip": self.proj_clip if projected else None,
            "residual": residual,
        }


class FilterOptions(_Part):
    """Filters over characters, and the highway layers above them."""

    activation: Literal["relu", "tanh"]
    """Activation function after max-pooling."""
    filters: tuple[FilterPair, ...] = Field(min_length=1, max_length=_MANY)
    """Width and number of each kind."""
    n_highway: int = Field(default=0, ge=0, le=_MANY)
    """Highway layers."""
    max_characters_per_token: int = Field(default=50, ge=4, le=1000)
    """Characters of a word that are read, begin and end of word counted."""

    @property
    def features(self) -> int:
        """Filters of all widths."""
        return sum(number for _, number in self.filters)

    def characters(self, *, char_dim: int, projected_to: int | None) -> dict[str, Any]:
        """As settings of ours, with a projection to this dimension or without any."""
        return {
            "char_dim": char_dim,
            "filters": [{"width": width, "num_filters": number} for width, number in self.filters],
            "activation": self.activation,
            "num_highway_layers": self.n_highway,
            "dim": projected_to or self.features,
            "projected": projected_to is not None,
        }


class EmbeddingOptions(_Part):
    """The table of characters."""

    dim: int = Field(ge=1, le=_WIDE)
    """Dimension of a character's vector."""


class ByteOptions(FilterOptions):
    """`char_cnn` of bilm-tf: words from their bytes."""

    embedding: EmbeddingOptions
    """The table of bytes and special characters."""
    n_characters: Literal[261, 262] = 262
    """261 in training, 262 in use; the tensors are the same."""


class BilmOptions(_Part):
    """The whole of `options.json`."""

    lstm: LstmOptions
    """The layers with context."""
    char_cnn: ByteOptions
    """From bytes to layer 0."""


class NamedLstmOptions(LstmOptions):
    """`encoder` of ELMoForManyLangs."""

    name: str
    """Which encoder."""


class WordOptions(FilterOptions):
    """`token_embedder` of ELMoForManyLangs: a table of words beside the characters."""

    name: str
    """Which way of reading characters."""
    word_dim: int = Field(ge=0, le=_WIDE)
    """Dimension of the embedding table; 0 without one."""
    char_dim: int = Field(ge=0, le=_WIDE)
    """Dimension of a character's vector; 0 where none are read."""


class ManyLangsOptions(_Part):
    """An architecture file of ELMoForManyLangs."""

    encoder: NamedLstmOptions
    """The layers with context."""
    token_embedder: WordOptions
    """From the word to layer 0."""


def read_json(path: Path) -> dict[str, Any]:
    """The object a small JSON file holds."""
    if not path.is_file():
        raise ModelError(f"There is no {path}. Put it beside the weights, or name it.")
    try:
        values = parse_json(read_text(path, LARGEST_FILE))
    except ValueError as error:
        raise ModelError(f"{path} is not JSON: {error}. Copy it again.") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path} holds no options but a {type(values).__name__}.")
    return values


def parse(kind: type[AnySettings], values: dict[str, Any], path: Path) -> AnySettings:
    """Options or settings of this kind, or an error that names the file and the key."""
    try:
        return build(kind, values)
    except ConfigError as error:
        raise ModelError(f"{path} does not describe a known model: {error}") from error


def unknown_keys(part: Settings, prefix: str = "") -> Iterator[str]:
    """Keys that are neither used nor known to be of training alone, by their full names."""
    for key in part.model_extra or {}:
        if prefix or key not in _TRAINING_KEYS:
            yield prefix + key
    for name in type(part).model_fields:
        inner = getattr(part, name)
        if isinstance(inner, Settings):
            yield from unknown_keys(inner, f"{prefix}{name}.")
