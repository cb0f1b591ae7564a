"""Say how much a sentence is like the text a model was trained on, word by word.

Each word's log-probability (base 2, in bits; nearer to zero is likelier) in each direction. Several
sentences are ranked. Text is split into words as the model's corpus was.

Examples:

  polyseme score models/en "She plays the piano." "She plays piano the."

  polyseme score models/zh 今天是周日 今天周日是
"""

import math
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.config import Settings
from polyseme.errors import ConfigError, ModelError
from polyseme.model import Model
from polyseme.pretraining.scores import Score, score_sentences
from polyseme.printable import PrintableText
from polyseme.progress import Progress, Silence
from polyseme.text.running import RunningText


class ScoreConfig(Settings):
    """Which sentences, by which model."""

    model: Path
    """The model folder."""
    inputs: tuple[str, ...]
    """Sentences, each quoted; a text of several is scored sentence by sentence."""


@dataclass(frozen=True)
class Scored:
    """Sentences with their scores, likeliest first."""

    scores: list[Score]


def run(config: ScoreConfig, progress: Progress | None = None) -> Scored:
    """Score every sentence of every text."""
    progress = progress or Silence()
    model = Model.load(config.model)
    if model.config.objective.kind not in ("bidirectional", "causal"):
        raise ModelError(
            f"{config.model} predicts '{model.config.objective.kind}', which gives no probability "
            "of a sentence. Score with a bidirectional (ELMo) or causal (GPT) model."
        )
    reader = RunningText(model.preparation)
    sentences = [sentence for text in config.inputs for sentence in reader.sentences(text)]
    if not sentences:
        raise ConfigError("There is no word in what was given. Quote each sentence.")
    scores = score_sentences(model, sentences)
    return Scored(sorted(scores, key=lambda score: -score.total))


def show(result: Scored) -> RenderableType:
    """Each sentence with its words coloured by how expected they were."""
    blocks: list[RenderableType] = []
    for score in result.scores:
        table = Table(title_justify="left", show_edge=False, pad_edge=False)
        table.title = PrintableText(f"{_bits(score.total)} bits: {' '.join(score.words)}")
        table.add_column("")
        for word in (*score.words, "sum"):
            table.add_column(PrintableText(word, overflow="fold"), justify="right")
        for part, found in score.parts.items():
            # The mark at the far end is predicted too; it has no column, but is in the sum.
            cells = [_coloured(value) for value in found.words]
            table.add_row(part, *cells, _bits(found.total))
        blocks.append(table)
    return Group(*blocks, _LEGEND)


_LEGEND = PrintableText.assemble(
    ("expected", "green"),
    "  ",
    ("unusual", "yellow"),
    "  ",
    ("surprising", "red"),
    "   sums include the end of the sentence",
)


def _bits(value: float) -> str:
    return f"{value / math.log(2):.1f}"


def _coloured(value: float) -> PrintableText:
    bits = -value / math.log(2)
    style = "green" if bits < 7 else "yellow" if bits < 13 else "red"
    return PrintableText(_bits(value), style=style)
