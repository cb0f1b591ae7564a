"""Two processes of one thread each against one process of two, on the same batches."""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.side_by_side import compare, print_facts, print_table, take_turns, verdict
from polyseme.training.runlog import NAME as RUN_LOG

_FOREVER = "1000000000"
_TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@dataclass(frozen=True)
class Run:
    """All steps but the first, as the run's own log has them."""

    words: float
    seconds: float
    first_loss: float

    @property
    def speed(self) -> float:
        """Words read in a second."""
        return self.words / self.seconds


def processes(args: argparse.Namespace) -> None:
    """Two processes of one thread against one of two, through the command line."""
    print_facts()
    runs = take_turns(
        {
            "2 processes, 1 thread each": lambda: _run(args, _TORCHRUN, threads=1),
            "1 process, 2 threads": lambda: _run(args, (), threads=2),
        },
        args.repeats,
    )
    rows = [
        (
            name,
            f"{statistics.median(run.speed for run in done):,.0f}",
            " ".join(f"{run.speed:,.0f}" for run in done),
            f"{done[0].first_loss:.5f}",
        )
        for name, done in runs.items()
    ]
    print(f"{args.preset}, {args.steps} steps of the same batches, medians of {args.repeats}")
    print_table(("", "words/s", "each run", "first loss"), rows)
    two, one = ([run.speed for run in done] for done in runs.values())
    ratio, told = compare(two, one)
    print(f"two processes / one: {told}\n  {verdict(ratio, 1.0)}")


def _run(args: argparse.Namespace, launcher: tuple[str, ...], *, threads: int) -> Run:
    """So many steps of `pretrain`, then a stop: what comes at the end is not asked for."""
    # Loopback: gloo would else ask for the machine's name, and talk through the network card.
    surroundings = {"OMP_NUM_THREADS": str(threads), "GLOO_SOCKET_IFNAME": "lo"}
    with tempfile.TemporaryDirectory(prefix="polyseme-benchmark-") as folder:
        out, said = Path(folder) / "model", Path(folder) / "said.txt"
        command = [sys.executable, *launcher, "-m", "polyseme", "pretrain", str(args.corpus)]
        command += ["--preset", args.preset, "--precision", args.precision, "--out", str(out)]
        command += ["--steps", _FOREVER, "--evaluate-every", _FOREVER, "--device", "cpu"]
        if args.words:
            command += ["--set", f"batches.words={args.words}"]
        with said.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **surroundings},
            )
            try:
                steps = _wait_for(out / RUN_LOG, args.steps, process)
            finally:
                process.terminate()  # the command saves and ends
                process.wait()
        if len(steps) < args.steps:
            raise SystemExit(said.read_text(encoding="utf-8", errors="replace"))
    pairs = itertools.pairwise(steps)
    words = sum(b["words_per_second"] * (b["seconds"] - a["seconds"]) for a, b in pairs)
    seconds = steps[-1]["seconds"] - steps[0]["seconds"]
    return Run(words, seconds, steps[0]["loss"])


def _wait_for(log: Path, wanted: int, process: "subprocess.Popen[bytes]") -> list[dict[str, Any]]:
    """The first lines of a log, as soon as there are so many, or the process has ended."""
    while True:
        is_over = process.poll() is not None
        text = log.read_text(encoding="utf-8") if log.is_file() else ""
        whole_lines = text[: text.rfind("\n") + 1].splitlines()
        steps = [line for line in map(json.loads, whole_lines) if "loss" in line]
        if len(steps) >= wanted or is_over:
            return steps[:wanted]
        time.sleep(0.5)
