r"""Train a tagger, classifier or other task on labelled data and a model's vectors.

A TOML file describes the task: its data, embeddings and network. Several seeds show how much
scores vary by chance. You can stop it at any time (Ctrl-C); the same command resumes the run.

Examples:

  polyseme train ner.toml --out tasks/ner

  polyseme train ner.toml --out tasks/ner --seeds 1,2,3

  polyseme train ner.toml --out tasks/quick \
      --set training.epochs=3 --set data.share=0.1
"""

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, NonNegativeInt
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Settings
from polyseme.display import html_table, summary
from polyseme.errors import ConfigError, MissingExtraError, ModelError
from polyseme.progress import SILENT, Progress, duration
from polyseme.storage.files import canonical_json, disk_faults_explained, write_text
from polyseme.storage.folders import SEED_PREFIX, check_holds_no_other

if TYPE_CHECKING:
    from polyseme.tasks.measures import MeanStd
    from polyseme.tasks.task import TaskConfig

_READS_NO_TEXT = (
    "No tokenizer is set for running text, so polyseme predict cannot read any with this task. If "
    "it should, name a model, a corpus or a language in data.tokenizer_from."
)


class TaskFileConfig(Settings):
    """Which task is trained, where to, and how often."""

    arguments: ClassVar[tuple[str, ...]] = ("task",)

    task: Path
    """The TOML file that describes the task."""
    out: Path
    """Output folder, with a subfolder for each seed; a stopped run is resumed there."""
    seeds: tuple[NonNegativeInt, ...] = (1,)
    """Random seeds; a task is trained for each."""
    data: dict[str, Any] = Field(default_factory=dict)
    """Override settings of the file, such as `--set data.share=0.1`."""
    embeddings: dict[str, Any] = Field(default_factory=dict)
    """Override settings of the file, such as `--set embeddings.insert_at=both`."""
    network: dict[str, Any] = Field(default_factory=dict)
    """Override settings of the file, such as `--set network.context.num_layers=2`."""
    training: dict[str, Any] = Field(default_factory=dict)
    """Override settings of the file, such as `--set training.epochs=5`."""

    def read_task(self) -> "TaskConfig":
        """The settings in the file, with some changed."""
        from polyseme.tasks.task import read_task

        parts = self.model_dump(include={"data", "embeddings", "network", "training"})
        return read_task(self.task, {name: part for name, part in parts.items() if part})


class TrainConfig(TaskFileConfig):
    """Which task, where to, with which seeds."""

    include_model: bool = False
    """Put a copy of the model into the folder, so that the task can be moved and shared."""


@dataclass(frozen=True)
class TrainResult:
    """What came of it, seed by seed."""

    config: TrainConfig
    metadata: list[dict[str, Any]]
    score: "MeanStd"
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """What `metrics.json` has: the measure over all seeds, and of each."""
        measure = self.metadata[0]["measure"]
        return {"measure": measure, **self.score._asdict(), "seeds": self.metadata}

    def __repr__(self) -> str:
        measure, seeds = self.metadata[0]["measure"], len(self.metadata)
        over = f"{seeds} seeds" if seeds > 1 else ""
        told = f"{measure} {self.score} on the development data"
        return summary(f"TrainResult {self.config.out}", told, over)

    def _repr_html_(self) -> str:
        rows = [
            (str(told["seed"]), 100 * told["dev"], told["best_epoch"]) for told in self.metadata
        ]
        header = ("seed", self.metadata[0]["measure"], "best epoch")
        return html_table(f"{self.config.out}: {self.score}", rows, header)


def run(config: TrainConfig, progress: Progress = SILENT) -> TrainResult:
    """Train for each seed."""
    from polyseme.processes import keep_freed_memory
    from polyseme.tasks.measures import MeanStd
    from polyseme.tasks.task import ARTIFACT, include_model, seed_folder
    from polyseme.tasks.training import Splits, train_task, write_report
    from polyseme.training.processes import num_processes

    if num_processes() > 1:
        raise ConfigError(
            "A task is trained in one process, without torchrun. For several runs, use --seeds."
        )
    task_config = config.read_task()
    check_holds_no_other(config.out, ARTIFACT.name, ModelError)
    keep_freed_memory()
    with disk_faults_explained(config.out):
        splits = Splits.read(task_config)
        notes = [f"{name}: {stats.summary()}" for name, stats in splits.stats.items()]
        metadata = []
        if not task_config.reads_text:
            progress.log(_READS_NO_TEXT)
        if config.include_model:
            include_model(task_config, config.out)
        for seed in config.seeds:
            progress.log(f"Seed {seed}: {len(splits.train):,} training examples.")
            folder = seed_folder(config.out, seed)
            task = train_task(task_config, splits, folder, seed=seed, progress=progress)
            try:
                notes += write_report(task, folder, splits.dev)
            except MissingExtraError as error:
                notes.append(f"No plots: {error}")
            metadata.append(
                {name: told for name, told in task.metadata.items() if name != "made_from"}
            )
        score = MeanStd.of([told["dev"] for told in metadata])
        result = TrainResult(config, metadata, score, list(dict.fromkeys(notes)))
        write_text(config.out / "metrics.json", canonical_json(result.to_json()))
    return result


def show(result: TrainResult) -> RenderableType:
    """A row for each seed, and all of them together."""
    measure = result.metadata[0]["measure"]
    table = Table(title=f"{measure} on the development data", title_justify="left")
    for name in ("seed", measure, "best epoch", "epochs", "time", "layers"):
        table.add_column(name, justify="left" if name == "layers" else "right")
    for told in result.metadata:
        table.add_row(
            str(told["seed"]),
            f"{100 * told['dev']:.2f}",
            f"{told['best_epoch']:.0f}",
            f"{told['epochs']:.0f}",
            duration(told["seconds"]),
            mix_summary(told["mixes"]),
        )
    if len(result.metadata) > 1:
        table.add_row("all", str(result.score))
    out = result.config.out
    quoted = quote(str(out))
    return Group(
        table,
        *result.notes,
        f"Plots and scores: {out / f'{SEED_PREFIX}{result.config.seeds[0]}'}",
        f"Next: polyseme predict TEXT --task {quoted}, or polyseme evaluate {quoted}",
    )


def mix_summary(mixes: dict[str, Any]) -> str:
    """What the mixes have learned, in a few words: where each is inserted, its weights, gamma."""
    parts = []
    for place, mix in mixes.items():
        weights = " ".join(f"{weight:.2f}" for weight in mix["weights"])
        parts.append(f"{place} {weights} x {mix['gamma']:.2f}")
    return "; ".join(parts)
