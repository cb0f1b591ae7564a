"""The table and the picture of what benchmarks.gains has measured.

    python -m benchmarks.gains_table gains --on test --picture gains.png

Beside our figures stand those of Peters et al. 2018 for the tasks they have in common. Baselines,
model (93.6 million parameters, a billion words) and some of the data are others there, so that only
the size of the gain can be compared.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyseme.drawing import load_matplotlib
from polyseme.tasks.seeds import MeanStd


class Reported(NamedTuple):
    """What the authors of ELMo report: their baseline, and with ELMo."""

    baseline: float
    elmo: float

    @property
    def error_reduction(self) -> float:
        """Share of the baseline's errors that is gone."""
        return (self.elmo - self.baseline) / (100 - self.baseline)


TITLES = {
    "conll2003": "CoNLL-2003, names",
    "wnut17": "WNUT-17, names in posts",
    "chunking": "CoNLL-2000, chunks",
    "pos": "EWT, parts of speech",
    "srl": "EWT, semantic roles",
    "sst": "SST-5, sentiment",
    "snli": "SNLI, entailment",
    "coreference": "LitBank, coreference",
    "next_sentence": "Novels, the next sentence of four",
    "resume": "Resume, Chinese names",
    "weibo": "Weibo, Chinese names in posts",
    "chnsenticorp": "ChnSentiCorp, Chinese sentiment",
    "classical": "Classical to modern Chinese",
    "ocnli": "OCNLI, Chinese entailment",
    "pku": "PKU, Chinese words",
    "xquad": "XQuAD, questions",
    "drcd": "DRCD, Chinese questions",
    "cmrc2018": "CMRC 2018, Chinese questions",
}
REPORTED = {
    "conll2003": Reported(90.15, 92.22),
    "srl": Reported(81.4, 84.6),
    "sst": Reported(51.4, 54.7),
    "snli": Reported(88.0, 88.7),
    "xquad": Reported(81.1, 85.8),  # SQuAD 1.1, from which XQuAD takes its questions
    "coreference": Reported(67.2, 70.4),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("gains", type=Path)
    parser.add_argument("--on", choices=["dev", "test"], default="test")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    told = {name: _read(arguments.gains / f"{name}-{arguments.on}.json") for name in TITLES}
    found = {name: values for name, values in told.items() if values}
    print(
        "| task | measure | seeds | learned from | static | + model | errors | p "
        "| layers 0, 1, 2 | ELMo 2018 |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---|---|")
    for name, values in found.items():
        print(_row(name, values))
    if arguments.picture:
        _draw(found, arguments.picture)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _row(name: str, told: dict[str, Any]) -> str:
    shares = np.mean([mixes["input"]["weights"] for mixes in told["mixes"]], axis=0)
    reported = REPORTED.get(name)
    cells = [
        TITLES[name],
        told["measure"],
        str(len(told["frozen"])),
        f"{told['examples']:,}" if "examples" in told else "",
        str(MeanStd.of(told["static"])),
        str(MeanStd.of(told["frozen"])),
        _fewer(told["error_reduction"]),
        f"{told['p_value']:.4f}",
        " ".join(f"{share:.2f}" for share in shares),
        _of_theirs(reported) if reported else "",
    ]
    return "| " + " | ".join(cells) + " |"


def _of_theirs(reported: Reported) -> str:
    return f"{reported.baseline} → {reported.elmo}, {_fewer(reported.error_reduction)}"


def _fewer(error_reduction: float) -> str:
    return f"{-100 * error_reduction:+.1f} %".replace("-", "−")


def _draw(found: dict[str, Any], path: Path) -> None:
    figure_class, _, _ = load_matplotlib()
    figure = figure_class(figsize=(7.5, 4.4), layout="constrained")
    axes = figure.subplots()
    names = sorted(found, key=lambda name: -found[name]["error_reduction"])
    places = range(len(names))
    ours = [100 * found[name]["error_reduction"] for name in names]
    bars = axes.barh(places, ours, color="#9dbfd6", label="en-mini, zh-mini")
    axes.bar_label(bars, fmt="{:.1f}", padding=3)
    theirs = {k: REPORTED[name] for k, name in enumerate(names) if name in REPORTED}
    axes.scatter(
        [100 * reported.error_reduction for reported in theirs.values()],
        list(theirs),
        marker="D",
        color="#2f6690",
        zorder=3,
        label="ELMo, 2018, against its own baselines",
    )
    axes.set_yticks(places, [TITLES[name] for name in names])
    axes.invert_yaxis()
    axes.margins(x=0.08)
    axes.set(xlabel="% fewer errors than with static vectors")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
