"""A task: what it is, a TOML file; and once it is trained, words in, findings out; and its folder.

    model.safetensors  what was learned: network, mixes, and the encoder if it was fine-tuned
    config.toml        every setting, resolved
    words.json         what its family learned (labels), words and characters with own vectors
    manifest.json      SHA-256 of these, the model it was trained with, and how good it is

A frozen model is not in the folder, unless it was put there (`include_model`): the manifest tells
its hash, and no other is accepted. It is looked for inside the folder, where it was, and beside it.
Of a task trained with several seeds, the folder has one folder each; the best on development data
is the one loaded.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import TypedDict

from polyseme.config import Settings, build, merged, read_toml, to_toml
from polyseme.display import html_table, summary
from polyseme.embedding.hf.folder import hf_name
from polyseme.embedding.loading import fingerprint_of, model_files
from polyseme.errors import ConfigError, InputError, ModelError
from polyseme.limits import JSON_BYTES, read_json
from polyseme.storage.files import canonical_json, copy_file, describe_files, write_text
from polyseme.storage.folders import (
    HF_PREFIX,
    MANIFEST,
    SEED_PREFIX,
    ArtifactType,
    check_holds,
    open_artifact,
    read_manifest,
    write_manifest,
)
from polyseme.storage.installed import MODELS, model_folder, pip_command, task_folder
from polyseme.storage.weights import load_network, read_shapes, write_weights
from polyseme.tasks.data import DataConfig, DataSet
from polyseme.tasks.embeddings.embeddings import Embeddings, EmbeddingsConfig, load_model
from polyseme.tasks.embeddings.frozen import FrozenConfig
from polyseme.tasks.embeddings.word_embedding import EmbeddingVocabulary, ModelVectorsConfig
from polyseme.tasks.families import NetworkConfig, family_of
from polyseme.tasks.families.family import Example, Predicted, TaskBatch, TaskFamily
from polyseme.tasks.measures import ExampleScores
from polyseme.tasks.texts import TextInput, TextReader, group_texts, split_line
from polyseme.training import TrainingConfig


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
    """Early stopping: evaluations without improvement before training ends; it ends at once when
    nothing is left to improve. The best weights are kept in any case."""
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


WEIGHTS, CONFIG, WORDS = "model.safetensors", "config.toml", "words.json"
INCLUDED = "model"
"""Folder of the model, inside that of the task, if it was included."""


class _EmbeddingsInfo(TypedDict):
    model: Any


class _Metadata(TypedDict, total=False):
    dev: float
    is_on_pairs: bool


class _Manifest(TypedDict):
    """What is read of it."""

    embeddings: _EmbeddingsInfo
    metadata: _Metadata


ARTIFACT = ArtifactType(
    name="task",
    version=2,
    files=frozenset({WEIGHTS, CONFIG, WORDS}),
    metadata_keys=("embeddings", "metadata"),
    made_by="polyseme train TASK.toml",
    shape=_Manifest,
)


def is_task(folder: Path) -> bool:
    """Whether this is the folder of a trained task, not of a model."""
    return (folder / WORDS).is_file() or any(folder.glob(f"{SEED_PREFIX}*/{WORDS}"))


def seed_folder(folder: Path, seed: int) -> Path:
    """Where the task trained with this seed lies."""
    return folder / f"{SEED_PREFIX}{seed}"


def trained_in(folder: Path) -> list[Path]:
    """The trained tasks in a folder, one for each seed; or the folder itself."""
    check_holds(folder, ARTIFACT.name, ARTIFACT.made_by, ModelError)
    if (folder / MANIFEST).is_file():
        return [folder]
    found = [path for path in folder.glob(f"{SEED_PREFIX}*") if (path / MANIFEST).is_file()]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def best_in(folder: Path) -> Path:
    """The trained task that is best on the development data; of equals, the first."""
    found = {path: read_manifest(path, ARTIFACT)["metadata"] for path in trained_in(folder)}
    dev = {path: metadata.get("dev", 0.0) for path, metadata in found.items()}
    return max(dev, key=lambda path: dev[path])


_BATCH = 64  # examples labelled at once
_WINDOW = 2048  # examples in memory at once
_WINDOW_WORDS = 1 << 16  # and their words, but for one example that has more


class TaskModule(nn.Module):
    """Embeddings and network: everything of a task that is trained and saved."""

    def __init__(self, embeddings: Embeddings, family: TaskFamily[Any, Any]) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.network = family.network(embeddings.dims)

    def forward(self, batch: TaskBatch) -> dict[str, Tensor]:
        """What training lowers, summed over the examples."""
        inputs = self.embeddings(batch.features, step=batch.step)
        losses = self.network.losses(inputs, batch)  # (B,)
        return {"loss": losses.sum() + self.embeddings.penalty() * len(batch)}

    @torch.no_grad()
    def decode(self, batch: TaskBatch) -> list[Any]:
        """What is found for each example, in numbers."""
        return self.network.decode(self.embeddings(batch.features), batch)

    @torch.no_grad()
    def decode_probable(self, batch: TaskBatch) -> list[tuple[Any, Any]]:
        """The same, and how probable it is."""
        inputs = self.embeddings(batch.features)
        found = self.network.decode(inputs, batch)
        return list(zip(found, self.network.probabilities(inputs, batch, found), strict=True))


@dataclass(frozen=True)
class Task:
    """Settings, what the training data told, and weights."""

    config: TaskConfig
    family: TaskFamily[Any, Any]
    module: TaskModule
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the manifest tells: data, epochs, measures."""

    def __repr__(self) -> str:
        return summary("Task", *(f"{name} {value}" for name, value in self._rows()))

    def _repr_html_(self) -> str:
        return html_table("Task", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("network", self.config.network.kind), *self.family.facts()]
        if "dev" in self.metadata:
            measure = f"{100 * self.metadata['dev']:.2f} on the development data"
            rows.append((self.config.measured_by, measure))
        return rows

    @classmethod
    def new(cls, config: TaskConfig, train: Sequence[Example], words: Iterable[str]) -> "Task":
        """An untrained task; its weights depend on torch's seed.

        `words`: those that may have a static vector.
        """
        family = family_of(config.network).fit(train)
        embeddings = Embeddings.new(config.embeddings, words)
        return cls(config, family, TaskModule(embeddings, family))

    def data(self, examples: Sequence[Example], *, use_cache: bool = False) -> DataSet:
        """Examples to be labelled."""
        return DataSet(examples, self.family, self.module.embeddings, use_cache=use_cache)

    def decode(self, data: DataSet, *, probabilities: bool = False) -> list[Predicted]:
        """What is found for each example, in the order of the examples; if asked, how probable."""
        device = str(next(self.module.parameters()).device)
        was_training = self.module.training
        self.module.eval()
        predicted: list[Any] = [None] * len(data)
        with_probabilities = probabilities and self._can_be_asked_for_probabilities()
        for chosen in data.in_order(_BATCH):
            batch = data.batch(chosen).to(device)
            examples = [data.examples[number] for number in chosen]
            found = self._found(examples, batch, with_probabilities=with_probabilities)
            for number, each in zip(chosen, found, strict=True):
                predicted[number] = each
        self.module.train(was_training)
        return predicted

    def _found(
        self, examples: Sequence[Example], batch: TaskBatch, *, with_probabilities: bool
    ) -> Iterator[Predicted]:
        if not with_probabilities:
            yield from map(self.family.predicted, examples, self.module.decode(batch))
            return
        decoded = self.module.decode_probable(batch)
        for example, (found, shares) in zip(examples, decoded, strict=True):
            yield self.family.with_probabilities(self.family.predicted(example, found), shares)

    def _can_be_asked_for_probabilities(self) -> bool:
        """Not where they are told in any case; an error where there are none."""
        if self.family.probabilities == "never":
            raise ConfigError(
                f"A task of kind {self.config.network.kind!r} has no probabilities. "
                "Tagging, classification, pairs, sequence pairs, choice and question answering do."
            )
        return self.family.probabilities == "on request"

    @cached_property
    def reader(self) -> TextReader:
        """What finds words in what people write."""
        return self.config.text_reader()

    def examples_of(self, texts: Sequence[TextInput]) -> Iterator[Example]:
        """Texts as examples without gold."""
        groups = group_texts(texts, self.family.num_texts)
        return (example for each in groups for example in self.family.of_texts(each, self.reader))

    def examples_of_line(self, line: str) -> list[Example]:
        """A line of a file: a text, or several with tabs between them."""
        texts = split_line(line, self.family.num_texts)
        return list(self.family.of_texts(texts, self.reader))

    def predict(
        self, texts: str | Sequence[TextInput], *, probabilities: bool = False
    ) -> list[Any]:
        """What is found in each sentence of a text, or in each text or pair as a whole.

        Which of these, and what is found, the task's family decides; see its `Predicted`. Text is
        split into words as the model's corpus was. With `probabilities`, that of each word's label,
        or those of all labels of a text.
        """
        given = [texts] if isinstance(texts, str) else texts
        return list(self.label(self.examples_of(given), probabilities=probabilities))

    def label(
        self, examples: Iterable[Example], *, probabilities: bool = False
    ) -> Iterator[Predicted]:
        """What is found for each example, in order and in bounded memory; for each text, where a
        text is several examples."""
        found = (
            each
            for some in _limited(iter(examples))
            for each in self.decode(self.data(some), probabilities=probabilities)
        )
        return self.family.join(found)

    def evaluate(self, data: DataSet) -> ExampleScores:
        """How right predictions are, example by example."""
        return self.family.score(data.examples, self.decode(data))

    def save(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Write the folder; the manifest last, which makes it a trained task.

        `dtype`: of the weights on disk, which are computed with as float32 in any case.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
        write_weights(folder / WEIGHTS, self.module, dtype)
        embeddings = self.module.embeddings
        told = {**self.family.to_json(), "vocabulary": embeddings.vocabulary.as_json()}
        words = canonical_json(told)
        if len(words.encode()) > JSON_BYTES:
            raise ModelError(
                f"{WORDS} would have more than {JSON_BYTES:,} bytes, and not be read again. Keep "
                "fewer words: set embeddings.words.vectors.extra_words lower."
            )
        write_text(folder / WORDS, words)
        parts = {name: getattr(self.config, name) for name in ("data", "embeddings", "network")}
        text = to_toml(**parts, training=self.config.training)
        if self.config.measure is not None:
            text = f'measure = "{self.config.measure}"\n\n{text}'
        write_text(folder / CONFIG, text)
        write_manifest(
            folder,
            ARTIFACT,
            describe_files(folder, [WEIGHTS, CONFIG, WORDS]),
            embeddings=embeddings.fingerprint(),
            metadata=dict(self.metadata),
        )

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        *,
        model: str | PathLike[str] | None = None,
        device: str | None = None,
    ) -> "Task":
        """The trained task in a folder, or an installed one of this name; of several seeds, the
        best on the development data.

        `model`: where its model lies now, if it has moved. `device`: where a frozen model works.
        """
        folder, moved = task_folder(folder), None if model is None else model_folder(model)
        if not (folder / MANIFEST).is_file():
            folder = best_in(folder)
        told = open_artifact(folder, ARTIFACT, weights=read_shapes)
        config, family, vocabulary = _read_small(folder, told["metadata"])
        config = _with_model(config, folder, told["embeddings"].get("model"), moved)
        layers = load_model(config.embeddings, device)

        def new() -> TaskModule:
            embeddings = Embeddings.with_vocabulary(config.embeddings, vocabulary, layers)
            return TaskModule(embeddings, family)

        module = load_network(folder / WEIGHTS, new)
        return cls(config, family, module.eval(), told["metadata"])


def _limited(stream: Iterator[Example]) -> Iterator[list[Example]]:
    """Examples in lists that are not too long."""
    some: list[Example] = []
    num_words = 0
    for example in stream:
        some.append(example)
        num_words += sum(map(len, example.sentences))
        if len(some) == _WINDOW or num_words >= _WINDOW_WORDS:
            yield some
            some, num_words = [], 0
    if some:
        yield some


def _read_small(
    folder: Path, metadata: Mapping[str, Any]
) -> tuple[TaskConfig, TaskFamily[Any, Any], EmbeddingVocabulary]:
    """All of a task but its weights."""
    try:
        words = read_json(folder / WORDS)
        config = build(TaskConfig, read_toml(folder / CONFIG))
        family = family_of(config.network).restore({**metadata, **words})
        return config, family, EmbeddingVocabulary.from_json(words["vocabulary"])
    except (ConfigError, InputError, OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{folder} holds no task that can be read: {error}") from error


def _moved(config: TaskConfig, model: Path) -> TaskConfig:
    """The settings with this folder wherever they name the task's model: it may be the tokenizer's,
    too."""
    embeddings = config.embeddings
    old = embeddings.model.model if embeddings.model else config.tokenizer_from

    def with_folder(part: Settings | None, name: str) -> Settings | None:
        if part is None or getattr(part, name) != old:
            return part
        return part.model_copy(update={name: model})

    parts = {
        "model": with_folder(embeddings.model, "model"),
        "character_labels": with_folder(embeddings.character_labels, "tokenizer_from"),
    }
    data = with_folder(config.data, "tokenizer_from")
    return config.model_copy(
        update={"embeddings": embeddings.model_copy(update=parts), "data": data}
    )


def include_model(config: TaskConfig, out: Path) -> None:
    """Put the task's model into its folder, so that the folder can be moved and passed on."""
    if config.embeddings.model is None:
        raise ConfigError("This task uses no model: there is none to include.")
    for source in model_files(config.embeddings.model.model):
        copy_file(source, out / INCLUDED / source.name)


def _with_model(
    config: TaskConfig, folder: Path, sha256: str | None, stated: Path | None
) -> TaskConfig:
    """The settings with the folder in which the model lies now, which may not be where it was."""
    if config.embeddings.model is None:
        return config if stated is None else _moved(config, stated)
    settings = config.embeddings.model
    configured = settings.model
    pooling = settings.pooling if isinstance(settings, FrozenConfig) else "mean"
    if stated and hf_name(configured) is not None and hf_name(stated) is None:
        stated = Path(f"{HF_PREFIX}{stated}")
    is_published = not stated and str(configured) in MODELS
    candidates = [stated] if stated else _model_candidates(folder, configured)
    for candidate in candidates:
        with contextlib.suppress(ModelError):  # there is no model
            if fingerprint_of(candidate, pooling) == sha256:
                return _moved(config, candidate)
    tried = f"{stated} is not it" if stated else f"it was at {configured} and is not there now"
    get = f"Install it with: {pip_command(str(configured))}. Or name" if is_published else "Name"
    raise ModelError(
        f"The model that {folder} was trained with is not found: {tried}, nor beside the task. "
        f"{get} its folder with --model. (polyseme train --include-model keeps it with the task.)"
    )


def _model_candidates(folder: Path, configured: Path) -> Iterator[Path]:
    """Inside the task's folder, where the model was, and beside the task as seen from above it."""
    hf = hf_name(configured)
    lay = configured if hf is None else Path(hf)
    prefix = "" if hf is None else HF_PREFIX
    places = [folder / INCLUDED, folder.parent / INCLUDED, lay]
    for above in list(folder.resolve().parents)[:3]:
        places += [] if lay.is_absolute() else [above / lay]
        places += [above / lay.name, above / "models" / lay.name]
    return (Path(f"{prefix}{place}") for place in places)
