"""What a task is: its data, what feeds it, its network, and how it is trained. A TOML file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from polyseme.config import Settings, build, merged, read_toml
from polyseme.tasks.data import DataConfig
from polyseme.tasks.measures import Measure
from polyseme.tasks.networks import NetworkConfig
from polyseme.tasks.networks.tagging import TaggingConfig
from polyseme.training.settings import TrainingConfig
from polyseme.transfer.feed import FeedConfig
from polyseme.transfer.finetuned import FineTunedConfig
from polyseme.transfer.known import ModelVectorsConfig


class TaskTrainingConfig(Settings):
    """How a task is trained."""

    epochs: float = Field(15.0, gt=0, le=1_000_000)
    """Passes over the training data, at most."""
    batch: int = Field(32, ge=1, le=1_000_000)
    """Examples in each step."""
    learning_rate: float = Field(2e-3, gt=0)
    """The highest learning rate; it falls to zero over the epochs."""
    warmup: float = Field(0.05, ge=0, le=1)
    """Share of the steps in which the learning rate rises from near zero."""
    weight_decay: float = Field(0.01, ge=0)
    """Weight decay of matrices."""
    clip_norm: float = Field(5.0, gt=0)
    """Longest gradient allowed."""
    measure_every: float = Field(1.0, gt=0, le=1_000_000)
    """Epochs between two measurements on the development data. Raise it where there is much of that
    and little to learn from, or measuring takes more time than learning."""
    patience: int = Field(8, ge=1)
    """Measurements without improvement after which training stops. The best weights are kept in any
    case."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Numbers used inside the network."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where the work is done; `auto` takes a GPU if there is one."""
    save_minutes: float = Field(10.0, gt=0)
    """Minutes between checkpoints: the most work a crash can take."""


class TaskConfig(Settings):
    """Everything about a task but chance."""

    data: DataConfig
    """Files of examples."""
    feed: FeedConfig
    """What the network reads."""
    network: NetworkConfig
    """From vectors to labels."""
    training: TaskTrainingConfig = TaskTrainingConfig()
    """How it is trained."""
    measure: Measure | None = None
    """What decides which epoch is best and is told first; by default f1 where labels mark spans
    and accuracy elsewhere."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "TaskConfig":
        is_joined = self.network.kind == "joined"
        if is_joined and (self.feed.words or not isinstance(self.feed.model, FineTunedConfig)):
            raise ValueError(
                "a network of kind 'joined' reads a fine-tuned model and nothing else: set "
                "feed.model.kind = 'finetuned' and leave out feed.words"
            )
        return self

    @property
    def measured_by(self) -> Measure:
        """The measure, resolved."""
        marks_spans = isinstance(self.network, TaggingConfig) and self.network.scheme != "none"
        return self.measure or ("f1" if marks_spans else "accuracy")

    @property
    def words_like(self) -> Path | None:
        """The model whose way of finding words is used for running text, if any is named."""
        vectors = self.feed.words.vectors if self.feed.words else None
        if self.data.words_like is not None:
            return self.data.words_like
        if self.feed.units is not None:
            return self.feed.units.words_like
        if self.feed.model is not None:
            return self.feed.model.model
        if isinstance(vectors, ModelVectorsConfig):
            return vectors.model
        return None


def read_task(path: Path, changes: Mapping[str, Any]) -> TaskConfig:
    """The settings in a task's file, with some changed."""
    return build(TaskConfig, merged(read_toml(path), changes))


def training_config(config: TaskConfig, *, examples: int, seed: int) -> TrainingConfig:
    """How a run over so many training examples is made."""
    own = config.training
    per_epoch = -(-examples // own.batch)
    return TrainingConfig(
        steps=max(1, round(own.epochs * per_epoch)),
        evaluate_every=max(1, round(own.measure_every * per_epoch)),
        seed=seed,
        decay="linear",
        keep=1,
        **own.model_dump(exclude={"epochs", "batch", "measure_every"}),
    )
