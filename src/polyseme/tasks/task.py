"""A task that is trained, or about to be: words in, labels out; and its folder on disk.

    model.safetensors  what was learned: network, mixes, and the encoder if it was fine-tuned
    config.toml        every setting, resolved
    words.json         labels, and the words and characters with vectors of their own
    manifest.json      SHA-256 of these, the model it was trained with, and how good it is

A frozen model is not in the folder, unless it was put there (`include_model`): the manifest tells
its hash, and no other is accepted. It is looked for inside the folder, where it was, and beside it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from typing_extensions import TypedDict

from polyseme.config import Settings, build, read_toml, to_toml
from polyseme.encoders.stored import check_shapes, read_shapes, read_weights, write_weights
from polyseme.errors import ConfigError, InputError, ModelError
from polyseme.files import canonical_json, copy_file, sha256_of, write_text
from polyseme.folders import MANIFEST, Kind, open_sealed, read_manifest, seal_folder
from polyseme.limits import JSON_BYTES, read_json
from polyseme.model import KIND as MODEL
from polyseme.tasks.data import DataSet
from polyseme.tasks.examples import Example
from polyseme.tasks.labels import Labels, due
from polyseme.tasks.measures import Tally, tally_spans, tally_words
from polyseme.tasks.module import TaskModule
from polyseme.tasks.networks import NetworkConfig
from polyseme.tasks.networks.tagging import TaggingConfig
from polyseme.tasks.settings import TaskConfig
from polyseme.transfer.feed import Feed, load_model
from polyseme.transfer.known import Known

WEIGHTS, CONFIG, WORDS = "model.safetensors", "config.toml", "words.json"
INCLUDED = "model"
"""Folder of the model, inside that of the task, if it was included."""


class _FeedFacts(TypedDict):
    model: Any


class _Facts(TypedDict, total=False):
    dev: float
    is_on_pairs: bool


class _Manifest(TypedDict):
    """What is read of it."""

    feed: _FeedFacts
    facts: _Facts


KIND = Kind(
    name="task",
    version=1,
    files=frozenset({WEIGHTS, CONFIG, WORDS}),
    told=("feed", "facts"),
    made_by="polyseme train TASK.toml",
    shape=_Manifest,
)
_BATCH = 64  # examples answered at once
_WINDOW = 2048  # examples in memory at once


@dataclass(frozen=True)
class Task:
    """Settings, labels and weights."""

    config: TaskConfig
    labels: Labels
    module: TaskModule
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the manifest tells: data, epochs, measures."""

    @classmethod
    def new(cls, config: TaskConfig, train: Sequence[Example], words: Iterable[str]) -> "Task":
        """An untrained task; its weights depend on torch's seed.

        `words`: those that may have a static vector.
        """
        labels = Labels.of(train, config.network)
        feed = Feed.new(config.feed, words)
        return cls(config, labels, TaskModule(feed, config.network, labels))

    def data(self, examples: Sequence[Example], *, kept: bool = False) -> DataSet:
        """Examples to be answered."""
        return DataSet(examples, self.config.network, self.module.feed, kept=kept)

    def answer(self, data: DataSet) -> list[tuple[str, ...]]:
        """The labels of each example, in the order of the examples."""
        device = str(next(self.module.parameters()).device)
        was_training = self.module.training
        self.module.eval()
        found: list[tuple[str, ...]] = [()] * len(data)
        for chosen in data.in_order(_BATCH):
            answers = self.module.answer(data.batch(chosen).to(device))
            for number, labels in zip(chosen, answers, strict=True):
                found[number] = self.labels.decode(labels)
        self.module.train(was_training)
        return found

    def predict(self, examples: Iterable[Example]) -> Iterator[tuple[Example, tuple[str, ...]]]:
        """Each example with the labels found for it, in order and in bounded memory."""
        stream = iter(examples)
        while window := list(islice(stream, _WINDOW)):
            yield from zip(window, self.answer(self.data(window)), strict=True)

    def tally(self, data: DataSet) -> Tally:
        """How right the answers are, example by example."""
        return self.tally_of(data.examples, self.answer(data))

    def tally_of(self, examples: Sequence[Example], found: Sequence[Sequence[str]]) -> Tally:
        """How right these answers are."""
        network = self.config.network
        wanted = [due(example, network) for example in examples]
        if isinstance(network, TaggingConfig) and network.scheme != "none":
            return tally_spans(wanted, found, leave_out=network.leave_out)
        return tally_words(wanted, found)

    def save(self, folder: Path) -> None:
        """Write the folder; the manifest last, which makes it a trained task."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
        write_weights(folder / WEIGHTS, self.module)
        feed = self.module.feed
        told = {"labels": list(self.labels.names), "known": feed.known.as_json()}
        words = canonical_json(told)
        if len(words.encode()) > JSON_BYTES:
            raise ModelError(
                f"{WORDS} would have more than {JSON_BYTES:,} bytes, and not be read again. Keep "
                "fewer words: set feed.words.vectors.common lower."
            )
        write_text(folder / WORDS, words)
        parts = {name: getattr(self.config, name) for name in ("data", "feed", "network")}
        text = to_toml(**parts, training=self.config.training)
        write_text(folder / CONFIG, _with_measure(text, self.config))
        seal_folder(
            folder,
            KIND,
            [WEIGHTS, CONFIG, WORDS],
            feed=feed.fingerprint(),
            facts=dict(self.facts),
        )

    @classmethod
    def load(cls, folder: Path, *, model: Path | None = None) -> "Task":
        """The trained task in a folder. `model`: where its model lies now, if it has moved."""
        told = open_sealed(folder, KIND, weights=read_shapes)
        config, labels, known = _read_small(folder)
        config = _with_model(config, folder, told["feed"].get("model"), model)
        layers = load_model(config.feed)

        def new(network: NetworkConfig) -> TaskModule:
            return TaskModule(Feed.of(config.feed, known, layers), network, labels)

        check_shapes(folder / WEIGHTS, lambda: new(_without_rules(config.network)))
        with torch.random.fork_rng(devices=[]):  # what is drawn here is overwritten at once
            module = new(config.network)
        module.load_state_dict(read_weights(folder / WEIGHTS, module), assign=True)
        return cls(config, labels, module.eval(), told["facts"])


def _read_small(folder: Path) -> tuple[TaskConfig, Labels, Known]:
    """All of a task but its weights."""
    try:
        words = read_json(folder / WORDS)
        config = build(TaskConfig, read_toml(folder / CONFIG))
        labels = Labels.from_json(words["labels"], config.network)
        return config, labels, Known.from_json(words["known"])
    except (ConfigError, InputError, OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{folder} holds no task that can be read: {error}") from error


def _moved(config: TaskConfig, model: Path) -> TaskConfig:
    """The settings with this folder wherever they name the task's model: words may be found in
    its way, too."""
    feed = config.feed
    old = feed.model.model if feed.model else config.words_like

    def with_folder(part: Settings | None, name: str) -> Settings | None:
        if part is None or getattr(part, name) != old:
            return part
        return part.model_copy(update={name: model})

    parts = {
        "model": with_folder(feed.model, "model"),
        "units": with_folder(feed.units, "words_like"),
    }
    data = with_folder(config.data, "words_like")
    return config.model_copy(update={"feed": feed.model_copy(update=parts), "data": data})


def _without_rules(network: NetworkConfig) -> NetworkConfig:
    """The same weights; which labels may follow which is not worked out, pair by pair."""
    if not isinstance(network, TaggingConfig):
        return network
    return network.model_copy(update={"scheme": "none"})


def include_model(config: TaskConfig, out: Path) -> None:
    """Put the task's model into its folder, so that the folder can be moved and passed on."""
    if config.feed.model is None:
        raise ConfigError("This task uses no model: there is none to include.")
    source, target = config.feed.model.model, out / INCLUDED
    for name in (*read_manifest(source, MODEL)["files"], MANIFEST):
        copy_file(source / name, target / name)


def _with_model(
    config: TaskConfig, folder: Path, sha256: str | None, stated: Path | None
) -> TaskConfig:
    """The settings with the folder in which the model lies now, which may not be where it was."""
    if config.feed.model is None:
        return config if stated is None else _moved(config, stated)
    configured = config.feed.model.model
    candidates = [stated] if stated else _model_candidates(folder, configured)
    for candidate in candidates:
        path = candidate / MANIFEST
        if path.is_file() and sha256_of(path) == sha256:
            return _moved(config, candidate)
    tried = f"{stated} is not it" if stated else f"it was at {configured} and is not there now"
    raise ModelError(
        f"The model that {folder} was trained with is not found: {tried}, nor beside the task. "
        "Name its folder with --model. (polyseme train --include-model keeps it with the task.)"
    )


def _model_candidates(folder: Path, configured: Path) -> Iterator[Path]:
    """Inside the task's folder, where the model was, and beside the task as seen from above it."""
    yield from (folder / INCLUDED, folder.parent / INCLUDED, configured)
    for above in list(folder.resolve().parents)[:3]:
        if not configured.is_absolute():
            yield above / configured
        yield from (above / configured.name, above / "models" / configured.name)


def _with_measure(text: str, config: TaskConfig) -> str:
    return text if config.measure is None else f'measure = "{config.measure}"\n\n{text}'
