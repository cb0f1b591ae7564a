"""What happened in a run, line by line, in `run.jsonl`; for TensorBoard, if asked; and a picture.

JSON writes a loss with all the digits it needs, so two runs can be compared to the last bit. A run
that goes on begins with a copy of the lines so far, without those of steps it will do again.
"""

import json
import os
import time
from itertools import islice
from pathlib import Path
from typing import Any

from polyseme.display import load_matplotlib
from polyseme.errors import TrainingError, extra_needed_for
from polyseme.limits import LOG_LINES, parse_json, read_lines
from polyseme.storage.files import own_folder, scratch_for
from polyseme.training.checkpoint import RunState

NAME = "run.jsonl"
# Lines wait in memory for so long, in seconds; who watches the file sees it grow by then.
_PATIENCE = 1.0


class RunLog:
    """Appends lines to the log of a run."""

    def __init__(self, folder: Path, state: RunState, *, tensorboard: bool) -> None:
        path = folder / NAME
        _cut(path, state)
        self._board = _board(folder / "tensorboard", state.step) if tensorboard else None
        self._file = path.open("ab")
        self._written = time.monotonic()

    def step(self, step: int, *, loss: float, **metadata: Any) -> None:
        """One step and what is known of it."""
        self._add({"step": step, "loss": loss, **metadata})
        numbers = {"loss": loss, **{k: v for k, v in metadata.items() if isinstance(v, float)}}
        self._draw("training", numbers, step)

    def measures(self, step: int, measures: dict[str, float]) -> None:
        """Held-out measures after a step."""
        self._add({"step": step, "measures": measures})
        self._draw("held_out", measures, step)

    def event(self, step: int, event: str, **metadata: Any) -> None:
        """Something that does not happen in every run."""
        self._add({"step": step, "event": event, **metadata})
        self._write()

    def flush(self) -> None:
        """Return only when all lines are on the disk."""
        self._write()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write what waits, and let go of the file even if that fails."""
        self._file.close()
        if self._board is not None:
            self._board.close()

    def _add(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        if time.monotonic() - self._written > _PATIENCE:
            self._write()

    def _write(self) -> None:
        self._file.flush()
        self._written = time.monotonic()

    def _draw(self, group: str, numbers: dict[str, float], step: int) -> None:
        if self._board is not None:
            for name, number in numbers.items():
                self._board.add_scalar(f"{group}/{name}", number, step)


def _cut(path: Path, state: RunState) -> None:
    """Copy the log as far as the run stands, not through a link. A line torn by a kill is left."""
    if path.is_symlink():
        path.unlink()
    if not path.is_file():
        return
    with scratch_for(path) as scratch, scratch.open("wb") as copy:
        for line in read_lines(path):
            try:
                metadata = parse_json(line.decode())
                done = state.measured_at if "measures" in metadata else state.step
                is_over = not line.endswith(b"\n") or metadata["step"] > done
            except (ValueError, KeyError, TypeError):
                is_over = True
            if is_over:
                break
            copy.write(line)


def _board(folder: Path, from_step: int) -> Any:
    with extra_needed_for("tensorboard = true"):
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter(str(own_folder(folder)), purge_step=from_step + 1)


# The curve: loss and held-out perplexity over the steps


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
    """Write the picture (by matplotlib), of those measures in the log whose names end so."""
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


def _smooth(values: list[float]) -> list[float]:
    """A running mean that starts unbiased."""
    keep = 0.98
    smoothed, mean, weight = [], 0.0, 0.0
    for value in values:
        mean = keep * mean + (1 - keep) * value
        weight = keep * weight + (1 - keep)
        smoothed.append(mean / weight)
    return smoothed
