"""The variants of a task, each trained with the same budget: what does the model add?

See `variants` for what they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.config import build
from polyseme.errors import ConfigError
from polyseme.progress import Progress
from polyseme.storage.files import own_folder
from polyseme.tasks.data import read_split
from polyseme.tasks.embeddings import Variant
from polyseme.tasks.embeddings.embeddings import EmbeddingsConfig
from polyseme.tasks.embeddings.features import MixConfig
from polyseme.tasks.embeddings.finetuned import FineTunedConfig
from polyseme.tasks.embeddings.frozen import FrozenConfig
from polyseme.tasks.families.family import Example
from polyseme.tasks.measures import Comparison, ExampleScores, MeanStd, SeedComparison, compare
from polyseme.tasks.task import TaskConfig, seed_folder
from polyseme.tasks.training import Splits, train_task


@dataclass(frozen=True)
class VariantResult:
    """One variant, over all seeds."""

    variant: Variant
    values: list[float]
    """The measure for each seed."""
    metadata: list[dict[str, Any]]
    """What is told of each seed's training."""
    against: Comparison | None
    """Compared with the first variant, over sentences; None for the first itself."""

    @property
    def score(self) -> MeanStd:
        """The measure over seeds."""
        return MeanStd.of(self.values)

    def error_reduction(self, first: "VariantResult") -> float:
        """What part of the first variant's errors is gone."""
        return (self.score.mean - first.score.mean) / max(1e-9, 1 - first.score.mean)

    def over_seeds(self, first: "VariantResult") -> SeedComparison | None:
        """Compared with the first variant over seeds; None for itself, and of a single seed."""
        return None if self is first else SeedComparison.of(first.values, self.values)


@dataclass(frozen=True)
class Run:
    """One training of each variant: what is learned from, what is measured on, and the seed."""

    config: TaskConfig
    splits: Splits
    measured: list[Example]
    seed: int


def as_variant(config: TaskConfig, variant: Variant) -> TaskConfig:
    """The task with the embeddings of this variant, all else the same."""
    embeddings = config.embeddings
    model = embeddings.model.model if embeddings.model else None
    # How layers are mixed goes with them: static is trained once, whatever is tried of that.
    without_model: dict[str, Any] = {"model": None, "insert_at": "input", "mix": MixConfig()}
    changes: dict[str, Any]
    match variant:
        case "none":
            words = embeddings.words.model_dump() if embeddings.words else {}
            words |= {"vectors": {"kind": "new"}, "trained": True}
            # Characters that are labelled have new vectors as it is.
            changes = without_model | {"words": None if embeddings.character_labels else words}
        case "static":
            if embeddings.words is None:
                raise ConfigError("The task has no static vectors: embeddings.words is not set.")
            changes = without_model
        case "frozen" | "finetuned":
            if model is None:
                raise ConfigError(f"The task names no model to be {variant}: set embeddings.model.")
            kind = FrozenConfig if variant == "frozen" else FineTunedConfig
            is_so = isinstance(embeddings.model, kind)
            changes = {"model": embeddings.model if is_so else build(kind, {"model": model})}
    changed = build(EmbeddingsConfig, {**embeddings.model_dump(), **_dumped(changes)})
    # Whatever the variant, the same words are found.
    data = config.data.model_copy(update={"tokenizer_from": config.tokenizer_from})
    return config.model_copy(update={"embeddings": changed, "data": data})


def _dumped(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(v, "model_dump", lambda v=v: v)() for name, v in changes.items()}


def compare_variants(
    config: TaskConfig,
    variants: Sequence[Variant],
    out: Path,
    *,
    seeds: Sequence[int],
    on_test: bool,
    progress: Progress,
) -> list[VariantResult]:
    """Train every variant with every seed, then measure all on the same examples."""
    for variant in variants:
        as_variant(config, variant)  # or an error before anything is read
    splits = Splits.read(config)
    measured = measured_on(config, splits, on_test=on_test)
    runs = [Run(config, splits, measured, seed) for seed in seeds]
    return compare_runs(runs, variants, out, progress=progress)


def compare_runs(
    runs: Sequence[Run], variants: Sequence[Variant], out: Path, *, progress: Progress
) -> list[VariantResult]:
    """Train every variant in every run, and compare what all runs of it measured together."""
    measure = runs[0].config.measured_by
    # All seeds of a sentence are drawn together: they rise and fall with it.
    groups = [example.sentences for run in runs for example in run.measured]
    results: list[VariantResult] = []
    first: ExampleScores | None = None
    for variant in variants:
        scores: list[ExampleScores] = []
        metadata = []
        for run in runs:
            progress.log(f"{variant}, seed {run.seed}")
            folder = seed_folder(own_folder(out / variant), run.seed)
            changed = as_variant(run.config, variant)
            task = train_task(changed, run.splits, folder, seed=run.seed, progress=progress)
            scores.append(task.evaluate(task.data(run.measured, use_cache=True)))
            metadata.append(
                {name: told for name, told in task.metadata.items() if name != "made_from"}
            )
        whole, against = scores[0].concat(scores[1:]), None
        if first is None:
            first = whole
        else:
            against = compare(first, whole, measure=measure, groups=groups)
        values = [each.value(measure) for each in scores]
        results.append(VariantResult(variant, values, metadata, against))
    return results


def measured_on(config: TaskConfig, splits: Splits, *, on_test: bool) -> list[Example]:
    """The examples of the development or the test data."""
    if not on_test:
        return splits.dev
    if config.data.test is None:
        raise ConfigError("The task names no test data: set data.test.")
    return read_split(
        config.data.test, config.data.reader, config.network, text_reader=config.text_reader()
    ).examples
