"""Training steps with all threads, with one and adaptive: alone, and beside a busy program."""

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.pretrain_whole import Workload
from benchmarks.side_by_side import print_facts, print_table, take_turns
from polyseme.devices import set_threads
from polyseme.training.processes import DistributedContext
from polyseme.training.schedule import learning_rate_at
from polyseme.training.step import Stepper
from polyseme.training.threads import ThreadChoice

_SETTLING = 6  # steps in which numbers are tried; those that follow are counted


def threads(args: argparse.Namespace) -> None:
    """All threads, one thread and adaptive ones, alone and while another program takes a core."""
    most = args.threads or torch.get_num_threads()
    print_facts()
    work = Workload(args)
    wishes = {f"{most} threads": most, "1 thread": 1, "adaptive": None}
    rows = []
    for is_busy in (False, True):
        with company(is_busy):
            found = take_turns(
                {name: partial(_speed, work, args, wish, most) for name, wish in wishes.items()},
                args.repeats,
            )
        for name, speeds in found.items():
            told = " ".join(f"{speed:,.0f}" for speed in speeds)
            rows.append(
                (
                    f"{name}, {'in company' if is_busy else 'alone'}",
                    f"{statistics.median(speeds):,.0f}",
                    told,
                )
            )
    print_table(("", "words/s by the clock", "each turn"), rows)


@contextlib.contextmanager
def company(is_there: bool) -> Iterator[None]:
    """A program that never waits."""
    if not is_there:
        yield
        return
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def _speed(work: Workload, args: argparse.Namespace, wish: int | None, most: int) -> float:
    """Words per second over all steps but those in which numbers are tried."""
    training = work.training(args.precision)
    stepper = Stepper(
        work.train_module({}).module.train(), training, DistributedContext(0, 1, "cpu")
    )
    choice = ThreadChoice(wish or most, is_adaptive=wish is None)
    words, began = 0, time.perf_counter()
    for step, targets in enumerate(work.targets):
        if step == _SETTLING:
            words, began = 0, time.perf_counter()
        now = time.perf_counter()
        set_threads(choice.number)
        result = stepper.forward_backward(targets, step=step, wants_stop=False)
        stepper.optimizer_step(result.gradient_norm, learning_rate_at(step, training))
        choice.note(time.perf_counter() - now, targets.num_words)
        words += targets.num_words
    seconds = time.perf_counter() - began
    set_threads(most)
    return words / seconds
