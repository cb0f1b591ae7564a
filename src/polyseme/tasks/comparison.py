"""The same task fed in several ways, with the same budget: what does the model add?

none       vectors of words learned in the task alone
static     the task's static vectors, a word's vector being the same in every sentence
frozen     these, and the layers of the model as it is
finetuned  these, and the layers of the model trained along
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.files import own_folder
from polyseme.progress import Progress
from polyseme.tasks.data import read_split, sentences_of
from polyseme.tasks.examples import Example
from polyseme.tasks.learning import Material, learn
from polyseme.tasks.measures import Tally, combine
from polyseme.tasks.seeds import Spread, seed_folder
from polyseme.tasks.settings import TaskConfig
from polyseme.tasks.significance import Comparison, compare
from polyseme.transfer.feed import FeedConfig
from polyseme.transfer.finetuned import FineTunedConfig
from polyseme.transfer.frozen import FrozenConfig

Way = Literal["none", "static", "frozen", "finetuned"]


@dataclass(frozen=True)
class Row:
    """One way of feeding, over all seeds."""

    way: Way
    values: list[float]
    """The measure for each seed."""
    facts: list[dict[str, Any]]
    """What is told of each seed's training."""
    against: Comparison | None
    """Held against the first way; None for the first itself."""

    @property
    def spread(self) -> Spread:
        """The measure over seeds."""
        return Spread.of(self.values)

    def error_reduction(self, first: "Row") -> float:
        """What part of the first way's errors is gone."""
        return (self.spread.mean - first.spread.mean) / max(1e-9, 1 - first.spread.mean)


def feed_in(config: TaskConfig, way: Way) -> TaskConfig:
    """The task fed in this way, all else the same."""
    feed = config.feed
    model = feed.model.model if feed.model else None
    changes: dict[str, Any]
    match way:
        case "none":
            words = feed.words.model_dump() if feed.words else {}
            words |= {"vectors": {"kind": "new"}, "trained": True}
            # Characters that are labelled have new vectors as it is.
            changes = {"words": None if feed.units else words, "model": None, "place": "input"}
        case "static":
            if feed.words is None:
                raise ConfigError("The task has no static vectors: feed.words is not set.")
            changes = {"model": None, "place": "input"}
        case "frozen" | "finetuned":
            if model is None:
                raise ConfigError(f"The task names no model to be {way}: set feed.model.")
            kind = FrozenConfig if way == "frozen" else FineTunedConfig
            is_so = isinstance(feed.model, kind)
            changes = {"model": feed.model if is_so else kind(model=model)}
    changed = build(FeedConfig, {**feed.model_dump(), **_dumped(changes)})
    # However fed, the same words are found.
    data = config.data.model_copy(update={"words_like": config.words_like})
    return config.model_copy(update={"feed": changed, "data": data})


def _dumped(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(v, "model_dump", lambda v=v: v)() for name, v in changes.items()}


def compare_ways(
    config: TaskConfig,
    ways: Sequence[Way],
    out: Path,
    *,
    seeds: Sequence[int],
    on_test: bool,
    progress: Progress,
) -> list[Row]:
    """Train every way with every seed, then measure all on the same examples."""
    material = Material.read(config)
    measured = _measured_on(config, material, on_test=on_test)
    groups = [sentences_of(example) for example in measured]
    rows: list[Row] = []
    first: Tally | None = None
    for way in ways:
        fed = feed_in(config, way)
        tallies, facts = [], []
        for seed in seeds:
            progress.log(f"{way}, seed {seed}")
            folder = seed_folder(own_folder(out / way), seed)
            task = learn(fed, material, folder, seed=seed, progress=progress)
            tallies.append(task.tally(task.data(measured, kept=True)))
            facts.append({name: told for name, told in task.facts.items() if name != "made_from"})
        whole, against = combine(tallies), None
        if first is None:
            first = whole
        else:
            # All seeds of a sentence are drawn together: they rise and fall with it.
            every = groups * len(seeds)
            against = compare(first, whole, measure=config.measured_by, groups=every)
        values = [tally.value(config.measured_by) for tally in tallies]
        rows.append(Row(way, values, facts, against))
    return rows


def _measured_on(config: TaskConfig, material: Material, *, on_test: bool) -> list[Example]:
    if not on_test:
        return material.dev
    if config.data.test is None:
        raise ConfigError("The task names no test data: set data.test.")
    data, words_like = config.data, config.words_like
    return read_split(config.data.test, data.reader, config.network, words_like=words_like).examples
