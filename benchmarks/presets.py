"""What each point learns in the same time on the same corpus.

    python -m benchmarks.presets corpus/en --minutes 20 --out runs

Trains each point alone for the same wall-clock time, by the ordinary `pretrain`, and prints
held-out perplexities. Directional ones can be compared with each other, masked ones with each
other; the two kinds answer different questions. A run that was stopped goes on.
"""

import argparse
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from polyseme.cli.terminal import RichProgress
from polyseme.config import build
from polyseme.model import count_parameters
from polyseme.pretraining.run import pretrain
from polyseme.pretraining.settings import PretrainConfig

PRESETS = ("elmo-mini", "elmo-transformer", "lstm-masked", "gpt-mini", "bert-mini")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--points", default=",".join(PRESETS))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    table = Table(title=f"{arguments.minutes:g} minutes each, {torch.get_num_threads()} threads")
    headings = ("point", "parameters", "steps", "M words", "minutes", "words/s", "perplexity")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "point" else "right")
    for preset in arguments.presets.split(","):
        table.add_row(*_row(preset, arguments.corpus, arguments.minutes, arguments.out / preset))
        Console().print(table)  # so far: the whole takes hours


def _row(preset: str, corpus: Path, minutes: float, out: Path) -> list[str]:
    values = {"folder": corpus, "preset": preset, "hours": minutes / 60, "out": out}
    # Measured at the end only: measuring takes time from learning, and not the same from all.
    config = build(PretrainConfig, values | {"training": {"evaluate_every": 10**9}})
    began = time.monotonic()
    with RichProgress() as bars:
        result = pretrain(config, bars)
    assert result is not None
    bars.log(f"{preset}: {time.monotonic() - began:,.0f} s in all")
    outcome, metadata = result.outcome, result.model.metadata
    perplexities = ", ".join(
        f"{part} {value:,.1f}" for part, value in metadata["perplexity"].items()
    )
    return [
        preset,
        f"{count_parameters(result.model.network) / 1e6:.1f} M",
        f"{outcome.steps:,}",
        f"{outcome.words / 1e6:.1f}",
        f"{outcome.seconds / 60:.1f}",  # steps are fixed beforehand, by timing a few
        f"{outcome.words / outcome.seconds:,.0f}",
        perplexities,
    ]


if __name__ == "__main__":
    main()
