"""Train a task fed in several ways, with the same budget, and say what the model adds.

none: words learned in the task alone; static: the task's static vectors; frozen: these and the
model's layers; finetuned: these and the model trained along. Each way is held against the first
named, with a paired bootstrap over sentences. What is finished is not trained again.

Examples:

  polyseme compare ner.toml --with static,frozen --out compared/ner --seeds 1,2,3

  polyseme compare ner.toml --with none,static,frozen,finetuned --on test --out compared/ner
"""

from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands.train import TaskFileConfig
from polyseme.errors import ConfigError
from polyseme.files import canonical_json, disk_faults_explained, write_text
from polyseme.progress import NullProgress, Progress, duration

if TYPE_CHECKING:
    from polyseme.tasks.comparison import Row

Way = Literal["none", "static", "frozen", "finetuned"]


class CompareConfig(TaskFileConfig):
    """Which task, in which ways."""

    with_: tuple[Way, ...] = ("static", "frozen")
    """Ways of feeding, the first being what others are held against."""
    on: Literal["dev", "test"] = "dev"
    """What is measured on. Leave the test data alone until all is decided."""


@dataclass(frozen=True)
class Compared:
    """A row for each way."""

    config: CompareConfig
    measure: str
    rows: "list[Row]"


def run(config: CompareConfig, progress: Progress | None = None) -> Compared:
    """Train and measure all ways."""
    from polyseme.tasks.comparison import compare_ways
    from polyseme.training.memory import keep_freed_memory

    if len(set(config.with_)) != len(config.with_) or not config.with_:
        raise ConfigError(f"--with {','.join(config.with_)}: name each way once.")
    task = config.read_task()
    keep_freed_memory()
    with disk_faults_explained(config.out):
        rows = compare_ways(
            task,
            config.with_,
            config.out,
            seeds=config.seeds,
            on_test=config.on == "test",
            progress=progress or NullProgress(),
        )
        told = {"on": config.on, "measure": task.measured_by, "ways": [_told(row) for row in rows]}
        write_text(config.out / f"compare-{config.on}.json", canonical_json(told))
    return Compared(config, task.measured_by, rows)


def _told(row: "Row") -> dict[str, Any]:
    against = None if row.against is None else asdict(row.against)
    return {"way": row.way, "values": row.values, "against_first": against, "seeds": row.facts}


def show(result: Compared) -> RenderableType:
    """A row for each way, held against the first."""
    first = result.rows[0]
    title = f"{result.measure} on the {result.config.on} data"
    table = Table(title=title, title_justify="left")
    for name in ("fed", result.measure, "errors", "p", "numbers trained", "time"):
        table.add_column(name, justify="left" if name == "fed" else "right")
    for row in result.rows:
        told = row.facts[0]
        table.add_row(
            row.way,
            str(row.spread),
            f"{-row.error_reduction(first):+.1%}" if row.against else "",
            f"{row.against.p_value:.4f}" if row.against else "",
            f"{told['trained_parameters']:,}",
            duration(fmean(each["seconds"] for each in row.facts)),
        )
    return Group(table, f"All figures: {result.config.out / f'compare-{result.config.on}.json'}")
