"""Train a tagger, a classifier or a reader of pairs on labelled data, fed by a model.

The task is described in a TOML file: its data, what feeds it, its network. Several seeds tell how
much is chance. Stop it whenever you like (Ctrl-C): the same command goes on where it was.

Examples:

  polyseme train ner.toml --out tasks/ner

  polyseme train ner.toml --out tasks/ner --seeds 1,2,3

  polyseme train ner.toml --out tasks/quick --set training.epochs=3 --set data.share=0.1
"""

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from pydantic import Field, NonNegativeInt
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Settings
from polyseme.errors import ConfigError, MissingExtraError
from polyseme.files import canonical_json, disk_faults_explained, write_text
from polyseme.folders import SEED_PREFIX
from polyseme.progress import NullProgress, Progress, duration

if TYPE_CHECKING:
    from polyseme.tasks.seeds import Spread
    from polyseme.tasks.settings import TaskConfig


class TaskFileConfig(Settings):
    """Which task is trained, where to, and how often."""

    task: Path
    """The TOML file that describes the task."""
    out: Path
    """Folder to write to, with a folder in it for each seed; what was stopped goes on there."""
    seeds: tuple[NonNegativeInt, ...] = (1,)
    """Random seeds; a task is trained for each."""
    data: dict[str, Any] = Field(default_factory=dict)
    """Settings that differ from the file's, as `--set data.share=0.1`."""
    feed: dict[str, Any] = Field(default_factory=dict)
    """Settings that differ from the file's, as `--set feed.place=both`."""
    network: dict[str, Any] = Field(default_factory=dict)
    """Settings that differ from the file's, as `--set network.context.layers=2`."""
    training: dict[str, Any] = Field(default_factory=dict)
    """Settings that differ from the file's, as `--set training.epochs=5`."""

    def read_task(self) -> "TaskConfig":
        """The settings in the file, with some changed."""
        from polyseme.tasks.settings import read_task

        parts = self.model_dump(include={"data", "feed", "network", "training"})
        return read_task(self.task, {name: part for name, part in parts.items() if part})


class TrainConfig(TaskFileConfig):
    """Which task, where to, with which seeds."""

    include_model: bool = False
    """Put a copy of the model into the folder, so that the task can be moved and passed on."""


@dataclass(frozen=True)
class Trained:
    """What came of it, seed by seed."""

    config: TrainConfig
    facts: list[dict[str, Any]]
    spread: "Spread"
    notes: list[str]


def run(config: TrainConfig, progress: Progress | None = None) -> Trained:
    """Train for each seed."""
    from polyseme.tasks.learning import Material, learn
    from polyseme.tasks.report import write_report
    from polyseme.tasks.seeds import Spread, seed_folder
    from polyseme.tasks.task import include_model
    from polyseme.training.memory import keep_freed_memory
    from polyseme.training.processes import num_processes

    progress = progress or NullProgress()
    if num_processes() > 1:
        raise ConfigError("A task is trained in one process. Give other machines other seeds.")
    task_config = config.read_task()
    keep_freed_memory()
    with disk_faults_explained(config.out):
        material = Material.read(task_config)
        notes = [f"{name}: {account.summary()}" for name, account in material.accounts.items()]
        facts = []
        if config.include_model:
            include_model(task_config, config.out)
        for seed in config.seeds:
            progress.log(f"Seed {seed}: {len(material.train):,} training examples.")
            folder = seed_folder(config.out, seed)
            task = learn(task_config, material, folder, seed=seed, progress=progress)
            try:
                notes += write_report(task, folder, material.dev)
            except MissingExtraError as error:
                notes.append(f"No pictures: {error}")
            facts.append({name: told for name, told in task.facts.items() if name != "made_from"})
        spread = Spread.of([told["dev"] for told in facts])
        summary = {"measure": task_config.measured_by, **spread._asdict(), "seeds": facts}
        write_text(config.out / "metrics.json", canonical_json(summary))
    return Trained(config, facts, spread, list(dict.fromkeys(notes)))


def show(result: Trained) -> RenderableType:
    """A row for each seed, and all of them together."""
    measure = result.facts[0]["measure"]
    table = Table(title=f"{measure} on the development data", title_justify="left")
    for name in ("seed", measure, "best epoch", "epochs", "time", "layers"):
        table.add_column(name, justify="left" if name == "layers" else "right")
    for told in result.facts:
        table.add_row(
            str(told["seed"]),
            f"{100 * told['dev']:.2f}",
            f"{told['best_epoch']:.0f}",
            f"{told['epochs']:.0f}",
            duration(told["seconds"]),
            mixes_told(told["mixes"]),
        )
    if len(result.facts) > 1:
        table.add_row("all", str(result.spread))
    out = result.config.out
    quoted = quote(str(out))
    return Group(
        table,
        *result.notes,
        f"Pictures and figures: {out / f'{SEED_PREFIX}{result.config.seeds[0]}'}",
        f"Next: polyseme predict {quoted} TEXT, or polyseme evaluate {quoted}",
    )


def mixes_told(mixes: dict[str, Any]) -> str:
    """What the mixes have learned, in a few words."""
    parts = []
    for place, told in mixes.items():
        shares = " ".join(f"{share:.2f}" for share in told["layers"])
        parts.append(f"{place} {shares} x {told['scale']:.2f}")
    return "; ".join(parts)
