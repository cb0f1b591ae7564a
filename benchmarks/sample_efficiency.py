"""How much labelled data a frozen model saves: names in CoNLL-2003, static against frozen.

    python -m benchmarks.sample_efficiency DATA --english models/en-mini \
        --static-english en-static.bin --out gains --seeds 1,2,3

Trains with 1, 5, 10, 25 and 100 % of the training data; shares are nested, and every run takes as
many steps as a tenth of the data takes in the usual epochs, or those epochs if that is more, and is
measured as often as with all data. Says how much data static vectors need to reach what frozen
layers reach with less, and draws both curves. Given the folder of benchmarks.gains, what was
trained there on all data is not trained again.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gains import unpacked
from benchmarks.tasks import TASKS, settings_of
from polyseme.config import build, merged
from polyseme.drawing import load_matplotlib
from polyseme.progress import NullProgress
from polyseme.storage.files import write_text
from polyseme.tasks.comparison import compare_variants
from polyseme.tasks.settings import TaskConfig
from polyseme.training.memory import keep_freed_memory

SHARES = (0.01, 0.05, 0.1, 0.25, 1.0)
_FEWEST = 0.1  # share of the data whose steps are the fewest that are taken


def main() -> None:
    arguments = _parser().parse_args()
    keep_freed_memory()
    task = TASKS["conll2003"]
    data = unpacked(arguments.data, task.archive, arguments.out / "data")
    values = settings_of(task, data, vars(arguments), cache=arguments.out / "cache")
    usual = build(TaskConfig, values).training
    curves: dict[str, list[list[float]]] = {"static": [], "frozen": []}
    for share in SHARES:
        longer = max(1.0, _FEWEST / share)
        training = {"epochs": usual.epochs * longer, "measure_every": longer}
        changes = {"data": {"share": share}, "training": training}
        rows = compare_variants(
            build(TaskConfig, merged(values, changes)),
            ["static", "frozen"],
            arguments.out / ("conll2003" if share == 1 else f"conll2003-{share}"),
            seeds=[int(seed) for seed in arguments.seeds.split(",")],
            on_test=arguments.on == "test",
            progress=NullProgress(),
        )
        for row in rows:
            curves[row.variant].append(row.values)
        told = ", ".join(f"{row.variant} {row.score}" for row in rows)
        print(f"{share:>6.0%}  {told}", flush=True)
    _tell(curves, arguments.out)


def _tell(curves: dict[str, list[list[float]]], out: Path) -> None:
    """Where on the static curve the frozen values lie, read off between measured shares."""
    means = {
        variant: [float(np.mean(values)) for values in rows] for variant, rows in curves.items()
    }
    static = np.maximum.accumulate(means["static"])
    saved: dict[str, Any] = {}
    for share, value in zip(SHARES, means["frozen"], strict=True):
        if value >= static[-1]:
            print(f"frozen with {share:.0%} is above static with all: {value:.2%}")
            continue
        needed = float(np.exp(np.interp(value, static, np.log(SHARES))))
        saved[f"{share}"] = needed / share
        print(f"frozen with {share:.0%} ({value:.2%}) is static with {needed:.1%}")
    write_text(out / "efficiency.json", json.dumps({"values": curves, "saved": saved}, indent=1))
    _draw(curves, out / "efficiency.png")


def _draw(curves: dict[str, list[list[float]]], path: Path) -> None:
    figure_class, _, _ = load_matplotlib()
    figure = figure_class(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    places = [100 * share for share in SHARES]
    for (variant, rows), colour in zip(curves.items(), ("#9dbfd6", "#2f6690"), strict=True):
        deviations = [float(np.std(values, ddof=1)) * 100 for values in rows]
        axes.errorbar(
            places,
            [100 * float(np.mean(values)) for values in rows],
            deviations,
            marker="o",
            capsize=3,
            color=colour,
            label=variant,
        )
    axes.set(xscale="log", xlabel="% of the training data", ylabel="F1", title="CoNLL-2003, names")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=130)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--english", type=Path, required=True)
    parser.add_argument("--static-english", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--on", choices=["dev", "test"], default="dev")
    return parser


if __name__ == "__main__":
    main()
