r"""Train a task with different embeddings on the same budget, and test what the model adds.

Variants: none (embeddings learned in the task alone), static (the task's static vectors), frozen
(these and the model's frozen layers), finetuned (these and the fine-tuned model). Each is compared
with the first by a paired bootstrap over sentences and, with several seeds, by a permutation test
over seeds. Finished variants are not trained again.

Examples:

  polyseme compare ner.toml --with static,frozen --seeds 1,2,3 \
      --out compared/ner

  polyseme compare ner.toml --with none,static,frozen,finetuned --on test \
      --out compared/ner
"""

from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands.train import TaskFileConfig
from polyseme.config import Option
from polyseme.errors import ConfigError
from polyseme.progress import SILENT, Progress, duration
from polyseme.storage.files import canonical_json, disk_faults_explained, write_text
from polyseme.tasks.embeddings import Variant

if TYPE_CHECKING:
    from polyseme.tasks.comparison import VariantResult


class CompareConfig(TaskFileConfig):
    """Which task, in which variants."""

    variants: Annotated[tuple[Variant, ...], Option("--with", "A,B")] = ("static", "frozen")
    """Variants of its embeddings; the others are compared with the first."""
    on: Literal["dev", "test"] = "dev"
    """Data to evaluate on. Leave the test data alone until all is decided."""


@dataclass(frozen=True)
class CompareResult:
    """A result for each variant."""

    config: CompareConfig
    measure: str
    results: "list[VariantResult]"

    def to_json(self) -> dict[str, Any]:
        """What the file of all figures has."""
        variants = [_as_json(result, self.results[0]) for result in self.results]
        return {"on": self.config.on, "measure": self.measure, "variants": variants}


def run(config: CompareConfig, progress: Progress = SILENT) -> CompareResult:
    """Train and measure all variants."""
    from polyseme.processes import keep_freed_memory
    from polyseme.tasks.comparison import compare_variants

    if len(set(config.variants)) != len(config.variants) or not config.variants:
        raise ConfigError(f"--with {','.join(config.variants)}: name each variant once.")
    task = config.read_task()
    keep_freed_memory()
    with disk_faults_explained(config.out):
        results = compare_variants(
            task,
            config.variants,
            config.out,
            seeds=config.seeds,
            on_test=config.on == "test",
            progress=progress,
        )
        result = CompareResult(config, task.measured_by, results)
        write_text(config.out / f"compare-{config.on}.json", canonical_json(result.to_json()))
    return result


def _as_json(result: "VariantResult", first: "VariantResult") -> dict[str, Any]:
    seeds = result.over_seeds(first)
    return {
        "variant": result.variant,
        "values": result.values,
        "against_first": None if result.against is None else asdict(result.against),
        "over_seeds": None if seeds is None else seeds._asdict(),
        "seeds": result.metadata,
    }


def show(result: CompareResult) -> RenderableType:
    """A row for each variant, compared with the first."""
    first = result.results[0]
    title = f"{result.measure} on the {result.config.on} data"
    table = Table(title=title, title_justify="left")
    has_seeds = len(first.values) > 1 and len(result.results) > 1
    over_seeds = ("p, seeds",) if has_seeds else ()
    for name in ("variant", result.measure, "errors", "p", *over_seeds, "parameters", "time"):
        table.add_column(name, justify="left" if name == "variant" else "right")
    for row in result.results:
        told, seeds = row.metadata[0], row.over_seeds(first)
        table.add_row(
            row.variant,
            str(row.score),
            f"{-row.error_reduction(first):+.1%}" if row.against else "",
            f"{row.against.p_value:.4f}" if row.against else "",
            *([f"{seeds.p_value:.4f}" if seeds else ""] if has_seeds else []),
            f"{told['trained_parameters']:,}",
            duration(fmean(each["seconds"] for each in row.metadata)),
        )
    return Group(table, f"All scores: {result.config.out / f'compare-{result.config.on}.json'}")
