"""What a task is: its data, embeddings, network, and how it is trained. A TOML file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from polyseme.config import Settings, build, merged, read_toml
from polyseme.embedding.hf.folder import hf_name
from polyseme.tasks.data import DataConfig
from polyseme.tasks.embeddings.embeddings import EmbeddingsConfig
from polyseme.tasks.embeddings.word_embedding import ModelVectorsConfig
from polyseme.tasks.families import NetworkConfig, family_of
from polyseme.tasks.texts import TextReader
from polyseme.training.settings import TrainingConfig


class TaskTrainingConfig(Settings):
    """How a task is trained."""

    epochs: float = Field(15.0, gt=0, le=1_000_000)
    """Passes over the training data, at most."""
    batch: int = Field(32, ge=1, le=1_000_000)
    """Examples in each step."""
    learning_rate: float = Field(2e-3, gt=0)
    """The highest learning rate; it falls to zero over the epochs."""
    warmup_ratio: float = Field(0.05, ge=0, le=1)
    """Share of the steps in which the learning rate rises from near zero."""
    weight_decay: float = Field(0.01, ge=0)
    """Weight decay of matrices."""
    max_grad_norm: float = Field(5.0, gt=0)
    """Gradients of a larger norm are scaled down to this one."""
    measure_every: float = Field(1.0, gt=0, le=1_000_000)
    """Epochs between two measurements on the development data. Raise it where there is much of that
    and little to learn from, or measuring takes more time than learning."""
    patience: int = Field(8, ge=1)
    """Measurements without improvement after which training stops. The best weights are kept in any
    case."""
    on_nonfinite: Literal["raise", "skip"] = "raise"
    """What is done when a loss or gradient is not finite, or a loss spikes: stop, or skip it."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Numbers used inside the network."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where the work is done; `auto` takes a GPU if there is one."""
    adaptive_threads: bool = False
    """Use as many processor threads as are fastest at the time, by timing steps: for a machine on
    which other programs come and go. The last bits then depend on them."""
    save_minutes: float = Field(10.0, gt=0)
    """Minutes between checkpoints: the most work a crash can take."""


class TaskConfig(Settings):
    """Everything about a task but the seed."""

    data: DataConfig
    """Files of examples."""
    embeddings: EmbeddingsConfig
    """The vectors the network reads."""
    network: NetworkConfig
    """The family of the task, and what is built from vectors to findings."""
    training: TaskTrainingConfig = TaskTrainingConfig()
    """How it is trained."""
    measure: str | None = None
    """What decides which epoch is best and is told first; for labels accuracy, precision, recall,
    f1 or macro-f1. By default f1 where labels mark spans and accuracy elsewhere."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "TaskConfig":
        family = family_of(self.network)
        family.check(self.embeddings)
        if self.measure is not None and self.measure not in family.measures:
            known = ", ".join(sorted(set(family.measures)))
            raise ValueError(
                f"measure = {self.measure!r} is none of those for a network of kind "
                f"{self.network.kind!r}: {known}"
            )
        return self

    @property
    def measured_by(self) -> str:
        """The measure, resolved."""
        return self.measure or family_of(self.network).measures[0]

    @property
    def reads_text(self) -> bool:
        """Whether something says how words are found in running text."""
        return self.tokenizer_from is not None and hf_name(self.tokenizer_from) is None

    @property
    def tokenizer_from(self) -> Path | None:
        """The model whose tokenizer finds the words of running text, if any is named."""
        vectors = self.embeddings.words.vectors if self.embeddings.words else None
        if self.data.tokenizer_from is not None:
            return self.data.tokenizer_from
        if self.embeddings.character_labels is not None:
            return self.embeddings.character_labels.tokenizer_from
        if self.embeddings.model is not None:
            return self.embeddings.model.model
        if isinstance(vectors, ModelVectorsConfig):
            return vectors.model
        return None

    def text_reader(self) -> TextReader:
        """What finds words in running text, of data and of what people write."""
        at_characters = self.embeddings.character_labels is not None
        return TextReader(self.tokenizer_from, at_characters=at_characters)


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
        keep_checkpoints=1,
        **own.model_dump(exclude={"epochs", "batch", "measure_every"}),
    )
