"""Two versions of the program train the same model on the same batches, in turns of a few steps."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.side_by_side import compare, print_facts, print_table, verdict

_BAR = 1.25
_ROOT = Path(__file__).parents[1]


def versions(args: argparse.Namespace) -> None:
    """This version's training step against that of another checkout of the repository."""
    print_facts()
    folders = {"before": Path(args.before).absolute(), "now": _ROOT}
    workers = {name: _Worker(folder, args) for name, folder in folders.items()}
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
    for _ in range(args.repeats):
        for name, worker in workers.items():
            turns[name].append(worker.turn())
    for worker in workers.values():
        worker.end()
    words = {name: [turn["words"] / turn["processor"] for turn in turns[name]] for name in turns}
    rows = [
        (
            name,
            f"{statistics.median(words[name]):,.0f}",
            f"{statistics.median(turn['words'] / turn['clock'] for turn in turns[name]):,.0f}",
            f"{statistics.mean(turn['loss'] for turn in turns[name][-10:]):.4f}",
        )
        for name in turns
    ]
    print(f"{args.preset}, {args.repeats} turns of {args.steps} steps, {args.threads or 1} threads")
    print_table(("", "words/s of a processor", "words/s by the clock", "loss, last turns"), rows)
    ratio, told = compare(words["now"], words["before"])
    pairs = sorted(mine / old for mine, old in zip(words["now"], words["before"], strict=True))
    middle = pairs[len(pairs) // 4 : -(len(pairs) // 4) or None]
    print(f"now / before, processor time: {told}; middle half {middle[0]:.3f} to {middle[-1]:.3f}")
    print(f"  {verdict(ratio, _BAR)}")


class _Worker:
    """A process of one version, which works when it is told and sleeps while the other does."""

    def __init__(self, folder: Path, args: argparse.Namespace) -> None:
        path = os.pathsep.join([str(folder / "src"), str(_ROOT)])
        threads = str(args.threads or 1)
        settings = {"preset": args.preset, "corpus": str(Path(args.corpus).absolute())}
        settings |= {"words": args.words, "steps": args.steps * (args.repeats + 1)}
        command = [sys.executable, "-m", "benchmarks.pretrain_versions", json.dumps(settings)]
        self._steps = args.steps
        self._process = subprocess.Popen(
            [*command, args.precision],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": threads},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.turn()  # warming up

    def turn(self) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{self._steps}\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        return found

    def end(self) -> None:
        self._process.communicate()


def _work(settings: dict[str, Any], precision: str) -> None:
    """Steps as the training loop does them, as many as each line asks for."""
    from benchmarks.pretrain_whole import Workload
    from polyseme.training.processes import DistributedContext
    from polyseme.training.schedule import learning_rate_at
    from polyseme.training.step import Stepper

    work = Workload(argparse.Namespace(**settings))
    training = work.training(precision)
    stepper = Stepper(
        work.train_module({}).module.train(), training, DistributedContext(0, 1, "cpu")
    )
    done = 0
    for line in sys.stdin:
        clock, processor, words = time.perf_counter(), time.process_time(), 0
        for targets in work.targets[done : done + int(line)]:
            result = stepper.forward_backward(targets, step=done, wants_stop=False)
            stepper.optimizer_step(result.gradient_norm, learning_rate_at(done, training))
            done, words = done + 1, words + targets.num_words
        found = {
            "words": words,
            "processor": time.process_time() - processor,
            "clock": time.perf_counter() - clock,
            "loss": result.loss,
        }
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _work(json.loads(sys.argv[1]), sys.argv[2])
