"""What the readers of old weights share: bounded options, checked tensors, and what comes out.

    in   JSON options in their own words; arrays by their own names
    out  an `OldModel`: settings, vocabulary and weights under our names

Keys nobody knows are accepted and told (`unknown_keys`): the programs of the time passed over them
and published files carry many. Whether they changed the model, its tensors tell: one that no ELMo
has is refused. Our gates are ordered input, forget, output, candidate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import torch
from pydantic import BeforeValidator, ConfigDict, Field

from polyseme.config import AnySettings, Settings, build
from polyseme.data.batch import FIRST_WORD
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.errors import ConfigError, ModelError
from polyseme.legacy.weight_files import Floats
from polyseme.limits import parse_json, read_text
from polyseme.model import Model, ModelConfig, build_network
from polyseme.text.preprocessing import Preparation

LARGEST_FILE = 1 << 20
"""Bytes of options.json or an architecture file."""
_MANY = 64  # layers, highway layers or kinds of filters: far beyond any model there is
WIDEST = 1 << 16
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
FilterPair = tuple[Annotated[int, Field(ge=1, le=7)], Annotated[int, Field(ge=1, le=WIDEST)]]
"""How wide in characters, and how many."""


class OptionsPart(Settings):
    """Options in which unknown keys are kept."""

    model_config = ConfigDict(extra="allow")


class LstmOptions(OptionsPart):
    """The layers with context."""

    dim: int = Field(ge=1, le=WIDEST)
    """Memory cells in each layer and direction."""
    projection_dim: int = Field(ge=1, le=WIDEST)
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


class FilterOptions(OptionsPart):
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


Shapes = dict[str, tuple[int, ...]]

# Where in the others' order each of our gates is.
TENSORFLOW_GATES = (0, 2, 3, 1)  # theirs: input, candidate, forget, output
TORCH_GATES = (0, 1, 3, 2)  # theirs: input, forget, candidate, output


def check_tensors(found: Mapping[str, Floats], expected: Shapes, path: Path) -> None:
    """Refuse anything but these tensors, before anything is made of them."""
    for fault in _faults(found, expected):
        raise ModelError(f"{path}: {fault}. Are these the options of these weights?")
    for name in expected:
        # Not isfinite over all of it, which would take a quarter of the memory again.
        if not np.isfinite([found[name].min(), found[name].max()]).all():
            raise ModelError(f"{path}: {name} holds numbers that are not finite. Copy it again.")


def _faults(found: Mapping[str, Floats], expected: Shapes) -> Iterator[str]:
    for name, shape in expected.items():
        if name not in found:
            yield f"{name} is missing, expected with shape {shape}"
        elif found[name].shape != shape:
            yield f"{name} has shape {found[name].shape}, expected {shape}"
    for name in sorted(found.keys() - expected.keys()):
        yield f"{name} with shape {found[name].shape} is a tensor that no such model has"


def to_our_gates(blocks: Floats, order: Sequence[int]) -> Floats:
    """The four blocks of the last axis in our order."""
    return np.concatenate([np.split(blocks, 4, axis=-1)[n] for n in order], axis=-1)


def from_our_gates(blocks: Floats, order: Sequence[int]) -> Floats:
    """What `to_our_gates` did, undone."""
    return to_our_gates(blocks, [order.index(n) for n in range(4)])


@dataclass(frozen=True)
class OldModel:
    """Old weights under our names, in our order."""

    kind: str
    """Which programs wrote and read such files."""
    config: ModelConfig
    vocabulary: Vocabulary
    weights: dict[str, Floats]
    notes: tuple[str, ...] = ()
    """What a user should know: what is missing, what was passed over."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What is needed to write the same files again."""

    def model(self, preparation: Preparation | None, metadata: Mapping[str, Any]) -> Model:
        """As a model that can embed."""
        with torch.device("meta"):  # nothing is drawn at random only to be overwritten
            network = build_network(self.config, self.vocabulary)
        tensors = {name: torch.from_numpy(array) for name, array in self.weights.items()}
        network.load_state_dict(tensors, assign=True)
        told = {**self.metadata, **metadata}
        return Model(self.config, self.vocabulary, network.eval(), preparation, told)


def settings_of(
    vocabulary: VocabularyConfig, input_config: dict[str, Any], contextualizer: dict[str, Any]
) -> dict[str, Any]:
    """The settings of a model whose weights came without a softmax, not yet checked."""
    return {
        "vocabulary": vocabulary,
        "encoder": {
            "input": input_config,
            "contextualizer": contextualizer,
            "direction": "separate",
        },
        "objective": {"kind": "encoder_only"},
    }


def vocabulary_of(
    words: list[str], *, kind: str, max_characters: int, characters: str = ""
) -> Vocabulary:
    """These words, perhaps none, whose counts nobody knows."""
    config = VocabularyConfig.model_validate(
        {
            "size": FIRST_WORD + max(1, len(words)),
            "min_count": 1,
            "characters": kind,
            "max_characters": max_characters,
            "min_character_count": 1,
        }
    )
    counts = np.zeros(len(words), np.int64)
    return Vocabulary(config, pa.array(words, pa.string()), counts, characters)
