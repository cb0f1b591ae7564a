r"""Train several language models on a corpus for the same time each, and compare them.

For teaching, and to choose a model. Compares NNLM, word2vec, ELMo, GPT and BERT with n-grams: by
perplexity, by pseudowords (telling the uses of two words apart, with the word hidden), by parts of
speech (if you give a tagged text) and by the uses each finds similar. Models that are already
trained are kept.

Examples:

  polyseme compare-models corpus/en --minutes 10 --out models/compared

  polyseme compare-models corpus/en --presets word2vec,elmo-mini --minutes 5 \
      --word bank --tagged treebank.conllu --out models/compared
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands import Result
from polyseme.config import Folder, Settings
from polyseme.display import PrintableText, on_one_line, titled
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.meanings.model_comparison import ModelComparison

REPORT = "report.html"


class CompareModelsConfig(Settings):
    """What to train, on what, for how long."""

    arguments: ClassVar[tuple[str, ...]] = ("corpus",)

    corpus: Folder
    """The corpus folder."""
    out: Path
    """Folder for the models, one below it for each preset, and the report."""
    presets: tuple[str, ...] = ("nnlm", "word2vec", "elmo-mini", "gpt-mini", "bert-mini")
    """Which presets to compare; `polyseme plan` lists them."""
    minutes: float = Field(10.0, gt=0, le=100_000)
    """Training time per model, evaluation included."""
    word: str | None = None
    """Show the uses of this word that each model finds most like its first use."""
    tagged: Path | None = None
    """CoNLL-U file on which each layer is probed for parts of speech."""


def run(
    config: CompareModelsConfig, progress: Progress = SILENT
) -> "Result[ModelComparison, CompareModelsConfig]":
    """Train and measure each, write the report."""
    from polyseme.meanings.model_comparison import compare_models
    from polyseme.meanings.report import write_page
    from polyseme.text.corpus import Corpus

    found = compare_models(
        Corpus.open(config.corpus),
        config.presets,
        config.out,
        minutes=config.minutes,
        word=config.word,
        tagged=config.tagged,
        progress=progress,
    )
    write_page(config.out / REPORT, found.to_html())
    return Result(found, config)


def show(result: "Result[ModelComparison, CompareModelsConfig]") -> RenderableType:
    """The table, the uses, and how to read both."""
    found, config = result.found, result.config
    table = Table()
    for number, name in enumerate(found.header):
        table.add_column(name, justify="right" if 0 < number < 4 else "left", overflow="fold")
    for row in found.rows():
        cells = (f"{cell:,}" if isinstance(cell, int | float) else str(cell) for cell in row)
        table.add_row(*map(PrintableText, cells))
    parts: list[RenderableType] = [titled("Models after equal time", table)]
    if found.query:
        parts.append(f"Uses most like: {found.query}")
        for each in filter(lambda model: model.nearest, found.models):
            parts += [PrintableText(each.preset, "bold"), *(f"  {line}" for line in each.nearest)]
    return Group(*parts, *found.notes, on_one_line(f"Report: {config.out / REPORT}"))
