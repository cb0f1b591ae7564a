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
    """The peak learning rate; it decays to zero over the epochs."""
    warmup_ratio: float = Field(0.05, ge=0, le=1)
    """Fraction of the steps used to warm up the learning rate from near zero."""
    weight_decay: float = Field(0.01, ge=0)
    """Weight decay of matrices."""
    max_grad_norm: float = Field(5.0, gt=0)
    """Gradient clipping: the largest norm of the gradient."""
    measure_every: float = Field(1.0, gt=0, le=1_000_000)
    """Epochs between evaluations on the development data. Raise it if that is large and the
    training data small, or evaluation takes more time than training."""
    patience: int = Field(8, ge=1)
    """Early stopping: evaluations without improvement before training ends. The best weights are
    kept in any case."""
    on_nonfinite: Literal["raise", "skip"] = "raise"
    """If the loss or gradient is not finite, or the loss spikes: raise an error, or skip it."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the computation in the network."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where the work is done; `auto` takes a GPU if there is one."""
    adaptive_threads: bool = False
    """Adapt the number of CPU threads to the load of the machine, by timing steps. Results may then
    differ in the last bits."""
    save_minutes: float = Field(10.0, gt=0)
    """Minutes between checkpoints: the most work a crash can lose."""


class TaskConfig(Settings):
    """Everything about a task but the seed."""

    data: DataConfig
    """Files of examples."""
    embeddings: EmbeddingsConfig
    """The vectors the network reads."""
    network: NetworkConfig
    """The family of the task, and the layers from vectors to predictions."""
    training: TaskTrainingConfig = TaskTrainingConfig()
    """How it is trained."""
    measure: str | None = None
    """The metric that selects the best epoch and is reported first; for labels accuracy, precision,
    recall, f1 or macro-f1. By default f1 where labels mark spans and accuracy elsewhere."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "TaskConfig":
        family = family_of(self.network)
        family.check(self.embeddings)
        if self.measure is not None and self.measure not in family.measures:
            known = ", ".join(sorted(set(family.measures)))
            raise ValueError(
                f"measure = {self.measure!r} is not a measure for a network of kind "
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
