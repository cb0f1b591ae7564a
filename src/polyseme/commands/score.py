"""Score sentences by their log-probability under a language model, word by word.

Prints each word's log-probability in each direction (base 2, in bits; nearer to zero is likelier),
and ranks several sentences. Text is split into words in the same way as the model's training
corpus. --ngram adds the probabilities of a corpus's n-grams (interpolated modified Kneser-Ney).

Examples:

  polyseme score "She plays the piano." "She plays piano the." --model models/en

  polyseme score 今天是周日 今天周日是 --model models/zh

  polyseme score 今天是周日 今天周日是 --model models/zh --ngram corpus/zh --order 2

  cat sentences.txt | polyseme score - --model models/en --json
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Option, Settings
from polyseme.data.ngrams import NgramConfig
from polyseme.display import PrintableText, numbers, titled
from polyseme.embedding.settings import ModelName
from polyseme.progress import SILENT, Progress
from polyseme.storage.installed import chosen_model
from polyseme.text.streams import texts_of

if TYPE_CHECKING:
    from polyseme.pretraining.evaluation import Score


class ScoreConfig(Settings):
    """Which sentences, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("inputs",)

    inputs: tuple[str, ...]
    """Sentences, each quoted; a text of several is scored sentence by sentence. - reads texts from
    standard input, one per line."""
    model: ModelName = None
    ngram: Annotated[Path | None, Option("--ngram", "CORPUS")] = None
    """A corpus on whose training part an n-gram model is counted, with the model's vocabulary; its
    words must have been found as the model's were."""
    order: int = Field(default=3, ge=1, le=5)
    """Order of the n-gram model."""
    memory: str = "2GB"
    """Memory the n-gram model may use before it goes to disk."""


@dataclass(frozen=True)
class ScoreResult:
    """Sentences with their scores, in the order given."""

    scores: "list[Score]"
    order: int = 3
    """Of the n-gram model, where there is one."""

    def json_lines(self) -> Iterator[dict[str, Any]]:
        """A line for each sentence."""
        return (score.as_json() for score in self.scores)


def run(config: ScoreConfig, progress: Progress = SILENT) -> ScoreResult:
    """Score every sentence of every text."""
    from polyseme.pretraining.evaluation import score_texts

    texts = texts_of(config.inputs)
    scores = score_texts(
        Path(chosen_model(config.model, texts, progress)),
        texts,
        ngram=config.ngram,
        ngrams=NgramConfig(order=config.order, memory=config.memory),
        progress=progress,
    )
    return ScoreResult(scores, config.order)


def show(result: ScoreResult) -> RenderableType:
    """Each sentence, likeliest first, with its words coloured by how expected they were."""
    ranked = sorted(result.scores, key=lambda score: -score.total)
    tables = (_table(score, f"{result.order}-gram") for score in ranked)
    return Group(*tables, _LEGEND)


def _table(score: "Score", ngram: str) -> RenderableType:
    """A word a row: a sentence may have more words than a screen has columns."""
    in_bits = score.as_json()
    columns = numbers(*(ngram if part == "ngram" else part for part in score.columns))
    table = Table("word", *columns, show_edge=False, pad_edge=False)
    parts = [in_bits[part] for part in score.columns]
    for word, *values in zip(score.words, *(part["words"] for part in parts), strict=True):
        table.add_row(PrintableText(word, overflow="fold"), *map(_coloured, values))
    # The sentence's end is predicted too; it has no row, but is in the sum.
    table.add_section()
    table.add_row("sum", *(f"{part['total']:.1f}" for part in parts))
    bits = f"{in_bits['total']:.1f} bits"
    if score.ngram is not None:
        bits += f", {ngram} {in_bits['ngram']['total']:.1f}"
    return titled(f"{bits}: {' '.join(score.words)}", table)


_LEGEND = PrintableText.assemble(
    ("expected", "green"),
    "  ",
    ("unusual", "yellow"),
    "  ",
    ("surprising", "red"),
    "   sums include the end of the sentence",
)


def _coloured(bits: float) -> PrintableText:
    style = "green" if bits > -7 else "yellow" if bits > -13 else "red"
    return PrintableText(f"{bits:.1f}", style)
