r"""Train a language model on a corpus: ELMo, GPT, BERT, word2vec or something between them.

You can interrupt it at any time (Ctrl-C). The same command resumes the run, with the same result.

Examples:

  polyseme pretrain corpus/en --preset elmo-mini --hours 2 --out models/en

  polyseme pretrain corpus/law --from models/en --epochs 3 --out models/law

  polyseme pretrain corpus/en --from models/en --only cloze --epochs 0.1 --out models/en-cloze

  polyseme pretrain corpus/en --out models/deep \
      --set model.encoder.contextualizer.num_layers=3

  torchrun --nproc-per-node 2 -m polyseme pretrain corpus/en --epochs 1 \
      --out models/en
"""

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.display import PrintableText, numbers
from polyseme.pretraining import PretrainConfig
from polyseme.progress import SILENT, Progress, duration

if TYPE_CHECKING:
    from polyseme.pretraining.run import PretrainResult

_FEW_WORDS = 200_000


def run(config: PretrainConfig, progress: Progress = SILENT) -> "PretrainResult | None":
    """Train, or go on with what was begun. Only the first of several processes returns a model."""
    from polyseme.pretraining.run import pretrain

    return pretrain(config, progress)


def show(result: "PretrainResult | None") -> RenderableType:
    """How good the model is, and what to do next."""
    if result is None:
        return ""
    metadata = result.model.metadata
    table = Table("part", *numbers("held-out perplexity", "unigram"))
    unigram = metadata.get("unigram_perplexity", {})
    for part, value in metadata["perplexity"].items():
        beside = f"{unigram[part]:,.2f}" if part in unigram else ""
        table.add_row(part, f"{value:,.2f}", beside)
    accuracies = metadata.get("accuracy", {}).items()
    others = [f"Held-out accuracy, {part}: {value:.2%}." for part, value in accuracies]
    outcome = result.outcome
    speed = outcome.words / max(1e-9, outcome.seconds)
    shown = (
        f"{outcome.steps:,} steps, {outcome.words:,} words, {duration(outcome.seconds)}, "
        f"{speed:,.0f} words/s. {outcome.skipped:,} steps skipped, {outcome.refused:,} damaged "
        "checkpoints rejected."
    )
    warnings = [PrintableText(warning, "bold yellow") for warning in _warnings(result)]
    following = f"Next: polyseme evaluate {quote(str(result.folder))} CORPUS"
    return Group(table, *others, shown, *warnings, *result.notes, following)


def _warnings(result: "PretrainResult") -> Iterator[str]:
    """What speaks against using the model, said plainly."""
    metadata = result.model.metadata
    words = metadata["corpus"]["words"]
    if words < _FEW_WORDS and not result.is_continued:
        yield (
            f"The corpus has {words:,} words. That is too little to train on: expect poor "
            f"vectors. They begin to be useful from about {_FEW_WORDS:,} words."
        )
    unigram = metadata.get("unigram_perplexity", {})
    worse = [
        part for part, found in metadata["perplexity"].items() if found >= unigram.get(part, 1e99)
    ]
    if worse:
        yield (
            f"This model ({', '.join(worse)}) predicts no better than the unigram model, which "
            "knows only how frequent each word is: it has learned nothing useful. Train longer "
            "(--hours, --epochs), or on more text."
        )
    if not metadata["perplexity"]:
        yield "No text was held out, so the model could not be evaluated: see prepare --held-out."
