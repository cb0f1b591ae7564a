"""A run of the toy as a process of its own, to be stopped, killed, traced or done by several.

    python -m training.toy_run FOLDER '{"steps": 20, "toy": {...}, "sleep": 0.01, "signal_at": 5}'

Ends with the error's own code, as the command line does.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from polyseme.errors import PolysemeError
from polyseme.training.loop import train
from polyseme.training.optimizer import Position
from training.toy import Toy, ToyBatch, settings

TESTS = Path(__file__).parents[1]


class SlowToy(Toy):
    """Takes its time, so that a signal can fall anywhere; or sends itself one."""

    sleep = 0.0
    signal_at = -1

    def batches(self, position: Position) -> Iterator[tuple[ToyBatch, Position]]:
        for batch, after in super().batches(position):
            time.sleep(self.sleep)
            if after["batch"] == self.signal_at and os.environ.get("RANK", "0") == "0":
                os.kill(os.getpid(), signal.SIGTERM)
            yield batch, after


def main(folder: str, values: str) -> int:
    torch.set_num_threads(1)
    given = json.loads(values)
    toy = SlowToy(**given.pop("toy", {}))
    toy.sleep = given.pop("sleep", 0.0)
    toy.signal_at = given.pop("signal_at", -1)
    config = settings(**given)
    try:
        train(toy, config, Path(folder))
    except PolysemeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def command(folder: Path, **values: Any) -> list[str]:
    """The command line of a run."""
    return [sys.executable, "-m", "training.toy_run", str(folder), json.dumps(values)]


def address_of(processes: int) -> dict[str, str]:
    """Where so many processes find each other, as torchrun tells them: a port that is free."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}


def run_together(processes: int, folder: Path, **values: Any) -> list[tuple[int, str]]:
    """A run by several processes at once, as torchrun starts them. Exit codes and complaints."""
    place = address_of(processes)
    crew = [
        subprocess.Popen(
            command(folder, **values),
            cwd=TESTS,
            env={**os.environ, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    try:
        complaints = [process.communicate(timeout=100)[1] for process in crew]
    finally:
        for process in crew:
            process.kill()
    return [(process.returncode, said) for process, said in zip(crew, complaints, strict=True)]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
