"""The run log in, a picture of learning out: loss and held-out perplexity over words read."""

from itertools import islice
from pathlib import Path
from typing import Any

from polyseme.drawing import load_matplotlib
from polyseme.errors import TrainingError
from polyseme.limits import LOG_LINES, parse_json, read_lines
from polyseme.storage.files import scratch_for


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a run log, up to `LOG_LINES` of them."""
    try:
        lines = islice(read_lines(path), LOG_LINES)
        return [parse_json(line.decode()) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise TrainingError(f"{path} is not a run log that can be plotted: {error}.") from error


def draw_curve(
    log: Path,
    final: Path,
    title: str,
    *,
    measure: str = "perplexity",
    label: str = "held-out perplexity",
    scale: str = "log",
) -> None:
    """Write the picture (extra [plot]), of those measures in the log whose names end so."""
    figure_class, _, _ = load_matplotlib()
    lines = read_log(log)
    steps = [line for line in lines if "loss" in line]
    measured = [line for line in lines if "measures" in line]
    figure = figure_class(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([line["step"] for line in steps], _smooth([line["loss"] for line in steps]))
    left.set(xlabel="step", ylabel="training loss, smoothed")
    names = list(measured[0]["measures"]) if measured else []
    names = [name for name in names if name.endswith(measure)]
    for name in names:
        values = [line["measures"][name] for line in measured]
        right.plot([line["step"] for line in measured], values, marker=".", label=name)
    right.set(xlabel="step", ylabel=label, yscale=scale)
    if scale == "log":  # 70 rather than 7 × 10¹
        from matplotlib.ticker import LogFormatter

        right.yaxis.set_major_formatter("{x:g}")
        right.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    if names:
        right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.suptitle(title)
    with scratch_for(final) as scratch:
        figure.savefig(scratch, dpi=120)


def _smooth(values: list[float], keep: float = 0.98) -> list[float]:
    """A running mean that starts unbiased."""
    smoothed, mean, weight = [], 0.0, 0.0
    for value in values:
        mean = keep * mean + (1 - keep) * value
        weight = keep * weight + (1 - keep)
        smoothed.append(mean / weight)
    return smoothed
