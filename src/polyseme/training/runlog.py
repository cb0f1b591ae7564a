"""What happened in a run, line by line, in `run.jsonl`; and for TensorBoard, if asked.

A step's line has the loss twice: readable, and exact to the last bit (`float.hex`), so that two
runs can be compared. A run that goes on cuts off the lines of steps it will do again.

The one file that is written in place, so it must be no other file too: a link in its place is
replaced by a new log, and of a hard link a copy is made.
"""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

from polyseme.errors import MissingExtraError
from polyseme.limits import parse_json, read_lines
from polyseme.storage.files import own_folder, scratch_for
from polyseme.training.state import RunState

NAME = "run.jsonl"
# Lines wait in memory for so long, in seconds; who watches the file sees it grow by then.
_PATIENCE = 1.0


class RunLog:
    """Appends lines to the log of a run."""

    def __init__(self, folder: Path, state: RunState, *, tensorboard: bool) -> None:
        path = folder / NAME
        _cut(path, state)
        # Not through a link, should one have come meanwhile; Windows knows no such option.
        how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.open(path, how, 0o644)
        self._waiting: list[str] = []
        self._written = time.monotonic()
        self._board = _board(folder / "tensorboard", state.step) if tensorboard else None

    def step(self, step: int, *, loss: float, **metadata: Any) -> None:
        """One step and what is known of it."""
        self._add({"step": step, "loss": loss, "loss_exactly": loss.hex(), **metadata})
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
        os.fsync(self._file)

    def close(self) -> None:
        """Write what waits, and let go of the file even if that fails."""
        try:
            self._write()
        finally:
            os.close(self._file)
            if self._board is not None:
                self._board.close()

    def _add(self, line: dict[str, Any]) -> None:
        self._waiting.append(json.dumps(line) + "\n")
        if time.monotonic() - self._written > _PATIENCE:
            self._write()

    def _write(self) -> None:
        text = "".join(self._waiting).encode()
        self._waiting.clear()  # first: after a failure they must not be written a second time
        self._written = time.monotonic()
        while text:
            text = text[os.write(self._file, text) :]

    def _draw(self, group: str, numbers: dict[str, float], step: int) -> None:
        if self._board is not None:
            for name, number in numbers.items():
                self._board.add_scalar(f"{group}/{name}", number, step)


def _cut(path: Path, state: RunState) -> None:
    """Cut the log where the run stands. A line torn by a kill is cut off too."""
    if path.is_symlink():
        path.unlink()
    if not path.is_file():
        return
    if path.stat().st_nlink > 1:
        with scratch_for(path) as copy:
            shutil.copyfile(path, copy)
    end = 0
    for line in read_lines(path):
        try:
            metadata = parse_json(line.decode())
            done = state.measured_at if "measures" in metadata else state.step
            is_over = not line.endswith(b"\n") or metadata["step"] > done
        except (ValueError, KeyError, TypeError):
            is_over = True
        if is_over:
            break
        end += len(line)
    os.truncate(path, end)


def _board(folder: Path, from_step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError.of(
            "tensorboard", extra="tensorboard", purpose="tensorboard = true"
        ) from error
    return SummaryWriter(str(own_folder(folder)), purge_step=from_step + 1)
