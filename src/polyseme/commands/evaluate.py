"""Measure a model on a corpus's held-out text, beside n-gram models of the same words.

Perplexity is told for each direction, among all words the model can predict. The n-gram models
(unigram, and interpolated modified Kneser-Ney) are trained on the corpus's training part.

Examples:

  polyseme evaluate models/en corpus/en

  polyseme evaluate models/en corpus/en --order 5

  polyseme evaluate models/en corpus/other --order 0
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import Field
from rich.console import RenderableType
from rich.table import Table

from polyseme.config import Settings
from polyseme.errors import ModelError
from polyseme.files import WORK
from polyseme.model import Model
from polyseme.pretraining.measure import Tally, full_measure
from polyseme.progress import Progress, Silence
from polyseme.text.corpus import Corpus
from polyseme.text.ngrams import NgramConfig, NgramResult, held_out_perplexity


class EvaluateConfig(Settings):
    """Which model, on which corpus, beside what."""

    model: Path
    """The model folder."""
    folder: Path
    """The corpus folder."""
    order: int = Field(default=3, ge=0, le=5)
    """Order of the n-gram model; 0 leaves it out."""
    memory: str = "2GB"
    """Memory the n-gram model may use before it goes to disk."""


@dataclass(frozen=True)
class Evaluated:
    """Perplexities of the model and of the n-gram models beside it."""

    config: EvaluateConfig
    tally: Tally
    ngrams: dict[str, NgramResult]


def run(config: EvaluateConfig, progress: Progress | None = None) -> Evaluated:
    """Measure; nothing is left on disk."""
    progress = progress or Silence()
    model, corpus = Model.load(config.model), Corpus.open(config.folder)
    model.check_same_words(corpus)
    if not corpus.accounting["held_out_sentences"]:
        raise ModelError(f"{config.folder} has no held-out sentences. Prepare it with --held-out.")
    tally = full_measure(model, corpus, progress=progress)
    ngrams: dict[str, NgramResult] = {}
    scratch = config.folder / WORK / "ngrams"
    try:
        for part in ("forward", "backward"):
            if config.order and part in tally.totals:
                ngrams[part] = held_out_perplexity(
                    corpus,
                    model.lexicon.words,
                    NgramConfig(order=config.order, memory=config.memory),
                    scratch=scratch,
                    threads=torch.get_num_threads(),
                    backward=part == "backward",
                    progress=progress,
                )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Evaluated(config, tally, ngrams)


def show(result: Evaluated) -> RenderableType:
    """One row for each part, n-grams beside the model."""
    order = result.config.order
    table = Table(title=f"Held-out perplexity of {result.config.model}", title_justify="left")
    table.add_column("part")
    table.add_column("predictions", justify="right")
    if result.ngrams:
        table.add_column("unigram", justify="right")
        table.add_column(f"{order}-gram", justify="right")
    table.add_column("model", justify="right")
    if result.ngrams:
        table.add_column(f"against {order}-gram", justify="right")
    for part, perplexity in result.tally.perplexities.items():
        cells = [part, f"{result.tally.counts[part]:,}"]
        told = f"{perplexity:,.1f}"
        if beside := result.ngrams.get(part):
            change = perplexity / beside.perplexity - 1
            cells += [f"{beside.unigram_perplexity:,.1f}", f"{beside.perplexity:,.1f}"]
            cells += [told, f"{change:+.1%}"]
        else:
            cells += ["", "", told] if result.ngrams else [told]
        table.add_row(*cells)
    return table
