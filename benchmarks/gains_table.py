"""The table and the picture of what benchmarks.gains has measured.

    python -m benchmarks.gains_table --measured benchmarks/gains.json --picture gains.png
    python -m benchmarks.gains_table gains --of base --measured benchmarks/gains.json --write

`benchmarks/gains.json` has what stands in docs/experiments.md, for `mini` and for `base`: all tasks
were not measured on one day. Those of the folder `gains` take the place of what it says of them,
with `--write` in the file. Each model is compared with static vectors trained on the same day;
where a row of `base` has no p, those of `mini` stand beside it.

Beside our figures stand those of Peters et al. 2018 for the tasks they have in common. Baselines,
model (93.6 million parameters, a billion words) and some of the data are others there, so that only
the size of the gain can be compared.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tasks import TASKS, LabelledSet
from polyseme.display import load_matplotlib
from polyseme.tasks.measures import MeanStd

MODELS = {"mini": "en-mini, zh-mini", "base": "en-base, zh-base"}
_COLOURS = {"mini": "#9dbfd6", "base": "#2f6690"}


class Gain(NamedTuple):
    """What was measured of one task: a line of `gains.json`, by these names."""

    measure: str
    runs: str
    """How many seeds there are, or folds."""
    learned_from: int | None
    """Examples; None where it was not written down."""
    static: MeanStd
    frozen: MeanStd
    error_reduction: float
    p_value: float | None
    """Over sentences; None where both were not measured on the same ones together."""
    weights: tuple[float, ...]
    """What the mix takes of each layer, the mean of all runs."""

    @classmethod
    def of_run(cls, told: dict[str, Any]) -> "Gain":
        """From what benchmarks.gains writes of a task."""
        folds, seeds = told.get("folds", 1), len(told["frozen"])
        weights = np.mean([mixes["input"]["weights"] for mixes in told["mixes"]], axis=0)
        return cls(
            told["measure"],
            f"{folds} folds" if folds > 1 else str(seeds),
            told.get("examples"),
            MeanStd.of(told["static"]),
            MeanStd.of(told["frozen"]),
            told["error_reduction"],
            told["p_value"],
            tuple(weights.tolist()),
        )

    @property
    def in_standard_errors(self) -> float | None:
        """The difference over seeds, divided by its standard error; None of a single seed."""
        if self.static.std is None or self.frozen.std is None:
            return None
        error = math.hypot(self.static.std, self.frozen.std) / math.sqrt(int(self.runs.split()[0]))
        return (self.frozen.mean - self.static.mean) / error

    @classmethod
    def of_json(cls, told: dict[str, Any]) -> "Gain":
        """From a line of `gains.json`."""
        scores = {name: MeanStd(*told[name]) for name in ("static", "frozen")}
        return cls(**{**told, **scores, "weights": tuple(told["weights"])})


Gains = dict[str, Gain]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("gains", type=Path, nargs="?", help="the folder of new runs")
    parser.add_argument("--of", choices=list(MODELS), default="mini", help="the models of these")
    parser.add_argument("--on", choices=["dev", "test"], default="test")
    parser.add_argument("--measured", type=Path, help="a file of earlier runs: gains.json")
    parser.add_argument("--write", action="store_true", help="the new runs to that file")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    found = _measured(arguments.measured)
    found[arguments.of] |= _of_runs(arguments.gains, arguments.on)
    found = {size: _in_order(gains) for size, gains in found.items() if gains}
    for size, gains in found.items():
        print(f"{MODELS[size]}\n\n{_HEAD}\n" + "\n".join(map(_row, gains.items())) + "\n")
    if arguments.write:
        _write(found, arguments.measured)
    if arguments.picture:
        _draw(found, arguments.picture)


def _measured(path: Path | None) -> dict[str, Gains]:
    told = json.loads(path.read_text(encoding="utf-8")) if path else {}
    return {
        size: {name: Gain.of_json(values) for name, values in told.get(size, {}).items()}
        for size in MODELS
    }


def _of_runs(folder: Path | None, on: str) -> Gains:
    files = {name: folder / f"{name}-{on}.json" for name in TASKS} if folder else {}
    return {
        name: Gain.of_run(json.loads(path.read_text(encoding="utf-8")))
        for name, path in files.items()
        if path.is_file()
    }


def _in_order(gains: Gains) -> Gains:
    return {name: gains[name] for name in TASKS if name in gains}


def _write(found: dict[str, Gains], path: Path) -> None:
    """A line for each task, so that a change shows what was measured again."""
    parts = []
    for size, gains in found.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(g._asdict())}" for name, g in gains.items()]
        parts.append(f" {json.dumps(size)}: {{\n" + ",\n".join(lines) + "\n }")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


_HEAD = """\
| task | measure | seeds | learned from | static | + model | errors | p | standard errors \
| layers 0, 1, 2 | ELMo 2018 |
|---|---|---:|---:|---:|---:|---:|---:|---:|---|---|"""


def _row(named: tuple[str, Gain]) -> str:
    name, gain = named
    cells = [
        TASKS[name].title,
        gain.measure,
        gain.runs,
        f"{gain.learned_from:,}" if gain.learned_from else "",
        str(gain.static),
        str(gain.frozen),
        _fewer(gain.error_reduction),
        "" if gain.p_value is None else f"{gain.p_value:.4f}",
        "" if gain.in_standard_errors is None else f"{gain.in_standard_errors:.1f}",
        " ".join(f"{share:.2f}" for share in gain.weights),
        _of_theirs(TASKS[name]),
    ]
    return "| " + " | ".join(cells) + " |"


def _of_theirs(task: LabelledSet) -> str:
    """Their baseline, their score with ELMo, and the share of errors that is gone."""
    if not (told := task.reported):
        return ""
    own_data = f" ({told['data']})" if "data" in told else ""
    return f"{told['baseline']} → {told['elmo']}, {_fewer(_error_reduction(task))}{own_data}"


def _error_reduction(task: LabelledSet) -> float:
    baseline, elmo = task.reported["baseline"], task.reported["elmo"]
    return float((elmo - baseline) / (100 - baseline))


def _fewer(error_reduction: float) -> str:
    return f"{-100 * error_reduction:+.1f} %".replace("-", "−")


def _draw(found: dict[str, Gains], path: Path) -> None:
    figure_class, _, _ = load_matplotlib()
    newest = {name: gain for gains in found.values() for name, gain in gains.items()}
    names = sorted(newest, key=lambda name: -newest[name].error_reduction)
    figure = figure_class(figsize=(8.5, 1.2 + 0.36 * len(names)), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(found)
    for number, (size, gains) in enumerate(found.items()):
        above = 0.4 - height * (number + 0.5)
        places = [place - above for place, name in enumerate(names) if name in gains]
        ours = [100 * gains[name].error_reduction for name in names if name in gains]
        bars = axes.barh(places, ours, height, color=_COLOURS[size], label=MODELS[size])
        axes.bar_label(bars, fmt="{:.1f}", padding=3, fontsize=8)
    theirs = {k: _error_reduction(TASKS[n]) for k, n in enumerate(names) if TASKS[n].reported}
    axes.scatter(
        [100 * reduction for reduction in theirs.values()],
        list(theirs),
        marker="D",
        color="#b5651d",
        zorder=3,
        label="ELMo, 2018, against its own baselines",
    )
    seeds = {name: " (one seed)" if newest[name].runs == "1" else "" for name in names}
    axes.set_yticks(range(len(names)), [TASKS[name].title + seeds[name] for name in names])
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(xlabel="% fewer errors than with static vectors")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
