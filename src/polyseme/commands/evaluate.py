"""Evaluate a model on a corpus's held-out text, or a trained task on labelled data.

For a model: perplexity in each direction, over its whole vocabulary, compared with n-gram models
(unigram, and interpolated modified Kneser-Ney) trained on the corpus's training part. For a task:
its scores on its test data, or on another file of the same format.

Examples:

  polyseme evaluate models/en --in corpus/en

  polyseme evaluate models/en --in corpus/en --order 5

  polyseme evaluate models/en --in corpus/other --order 0

  polyseme evaluate tasks/ner

  polyseme evaluate tasks/ner --data data/other-newspaper.conll
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Folder, MayBeRemote, Option, OptionalFolder, Settings
from polyseme.data.ngrams import (
    NgramConfig,
    NgramResult,
    held_out_perplexity,
    scratch_for_counting,
)
from polyseme.display import PrintableText, numbers, on_one_line, titled
from polyseme.errors import ConfigError, ModelError
from polyseme.progress import SILENT, Progress
from polyseme.storage.installed import model_folder
from polyseme.text.corpus import Corpus

if TYPE_CHECKING:
    from polyseme.pretraining.evaluation import Evaluation
    from polyseme.tasks.prediction import EvaluatedTask


class EvaluateConfig(Settings):
    """What to evaluate, on what, compared with what."""

    arguments: ClassVar[tuple[str, ...]] = ("model_or_task",)

    model_or_task: Folder
    """The model folder, or that of a trained task."""
    corpus: Annotated[Path | None, MayBeRemote, Option("--in", "CORPUS")] = None
    """For a model: the corpus whose held-out text it is evaluated on."""
    data: Path | None = None
    """For a task: a file of examples; by default the task's test data."""
    model: OptionalFolder = None
    """For a task: where its model is now, if it is not found automatically."""
    order: int = Field(default=3, ge=0, le=5)
    """Order of the n-gram model; 0 for none."""
    memory: str = "2GB"
    """Memory the n-gram model may use before it goes to disk."""


@dataclass(frozen=True)
class Evaluated:
    """Perplexities of the model and of the n-gram models beside it."""

    config: EvaluateConfig
    evaluation: "Evaluation"
    ngrams: dict[str, NgramResult]

    def to_json(self) -> dict[str, Any]:
        """Each part with its measure, and the n-gram models beside it."""
        told: dict[str, Any] = {"model": str(self.config.model_or_task), "parts": {}}
        for name, part in self.evaluation.parts.items():
            told["parts"][name] = {"predictions": part.count, part.measure: part.value}
            if beside := self.ngrams.get(name):
                told["parts"][name] |= {
                    "unigram_perplexity": beside.unigram_perplexity,
                    "ngram_perplexity": beside.perplexity,
                }
        return told


def run(config: EvaluateConfig, progress: Progress = SILENT) -> "Evaluated | EvaluatedTask":
    """Measure; nothing is left on disk."""
    from polyseme.tasks.prediction import evaluate_task
    from polyseme.tasks.task import is_task

    config = config.model_copy(update={"model_or_task": model_folder(config.model_or_task)})
    folder = config.model_or_task
    if is_task(folder):
        if config.corpus is not None:
            raise ConfigError(f"{folder} is a trained task: name a file of examples with --data.")
        return evaluate_task(folder, config.data, model=config.model, progress=progress)
    if config.corpus is None:
        raise ConfigError(
            f"{folder} is a language model: name the corpus whose held-out text to evaluate it on "
            "with --in. Only a trained task needs none."
        )
    return _measure(config, config.corpus, progress)


def _measure(config: EvaluateConfig, folder: Path, progress: Progress) -> Evaluated:
    import torch

    from polyseme.model import Model
    from polyseme.pretraining.evaluation import evaluate

    model, corpus = Model.load(config.model_or_task), Corpus.open(folder)
    corpus.check_same_words(model.preparation)
    if not corpus.read_stats["held_out_sentences"]:
        raise ModelError(f"{folder} has no held-out sentences. Prepare it with --held-out.")
    evaluation = evaluate(model, corpus, progress=progress)
    parts = [part for part in ("forward", "backward") if config.order and part in evaluation.parts]
    ngrams: dict[str, NgramResult] = {}
    for part in parts:
        with scratch_for_counting(corpus) as scratch:
            ngrams[part] = held_out_perplexity(
                corpus,
                model.vocabulary.words,
                NgramConfig(order=config.order, memory=config.memory),
                scratch=Path(scratch),
                threads=torch.get_num_threads(),
                backward=part == "backward",
                progress=progress,
            )
    return Evaluated(config, evaluation, ngrams)


def show(result: "Evaluated | EvaluatedTask") -> RenderableType:
    """The figures as a table."""
    return _show_model(result) if isinstance(result, Evaluated) else _show_task(result)


def _show_task(result: "EvaluatedTask") -> RenderableType:
    """All seeds in the title; below it tables of the first, as one with a row for each label."""
    title = f"{result.measure} of {result.folder} on {result.data}: {result.score}"
    tables = [rows for rows in result.scores[0].tables().values() if rows]
    if len(result.scores) > 1:
        title += f" over {len(result.scores)} seeds" + ("; labels of the first" if tables else "")
    heading = on_one_line(title, style="table.title")
    return Group(heading, *map(_table_of, tables), result.stats.summary())


def _table_of(rows: list[dict[str, Any]]) -> Table:
    """Shares in per cent."""
    table = Table()
    for name, value in rows[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    return table


def _cell(value: str | int | float) -> PrintableText:
    if isinstance(value, float):
        return PrintableText(f"{100 * value:.2f}")
    return PrintableText(value if isinstance(value, str) else f"{value:,}")


def _show_model(result: Evaluated) -> RenderableType:
    """One row for each part, n-grams beside the model."""
    order = result.config.order
    columns = ["predictions", "model"]
    if result.ngrams:
        columns = ["predictions", "unigram", f"{order}-gram", "model", f"vs. {order}-gram"]
    table = Table("part", *numbers(*columns))
    for part, perplexity in result.evaluation.values("perplexity").items():
        cells = [part, f"{result.evaluation.parts[part].count:,}"]
        told = f"{perplexity:,.1f}"
        if beside := result.ngrams.get(part):
            change = perplexity / beside.perplexity - 1
            cells += [f"{beside.unigram_perplexity:,.1f}", f"{beside.perplexity:,.1f}"]
            cells += [told, f"{change:+.1%}"]
        else:
            cells += ["", "", told] if result.ngrams else [told]
        table.add_row(*cells)
    accuracies = result.evaluation.values("accuracy").items()
    shown = titled(f"Held-out perplexity of {result.config.model_or_task}", table)
    return Group(shown, *(f"Accuracy, {part}: {value:.2%}." for part, value in accuracies))
