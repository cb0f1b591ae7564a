"""How fast a run would go here: a few real steps on real batches, thrown away."""

import contextlib
import copy
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from polyseme.objectives.prediction import TrainingTargets
from polyseme.pretraining.evaluation import evaluate_targets
from polyseme.pretraining.language_modeling import Pretraining
from polyseme.processes import keep_freed_memory
from polyseme.training.processes import process_group
from polyseme.training.settings import TrainingConfig
from polyseme.training.step import Stepper

_WARMUP_STEPS = 3


@dataclass(frozen=True)
class Throughput:
    """What a step takes."""

    seconds: float
    """Time of a step, on average."""
    words: float
    """Words a step reads, on average, special tokens counted."""
    memory: int
    """Most bytes this process has held so far."""

    @property
    def words_per_second(self) -> float:
        """Words read in a second."""
        return self.words / self.seconds


@contextlib.contextmanager
def without_denormals() -> Iterator[None]:
    """Vanishing numbers as zero: they change nothing and cost ten times the time.

    Only for as long as a run lasts: the caller's own arithmetic is none of our business.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def measure_throughput(
    train_module: Pretraining,
    config: TrainingConfig,
    *,
    steps: int = 12,
    max_seconds: float = math.inf,
) -> Throughput:
    """Time real steps of a copy; the original is as before.

    After `max_seconds` no further step is begun, but for the second, the first to be counted.
    """
    keep_freed_memory()
    seconds, words = [], []
    with process_group(config) as distributed:
        module = copy.deepcopy(train_module.module).to(distributed.device)
        stepper = Stepper(module, config, distributed)
        stepper.wrap()
        stream = train_module.batches({})
        for number in range(_WARMUP_STEPS + steps):
            targets, _ = next(stream)
            began = time.perf_counter()
            result = stepper.forward_backward(targets, step=number, wants_stop=False)
            stepper.optimizer_step(result.gradient_norm, 1e-6)
            if distributed.device.startswith("cuda"):
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - began)
            words.append(targets.num_words)
            if number and sum(seconds) > max_seconds:
                break
        stream.close()  # type: ignore[attr-defined]
    # Sentences of a batch are of like length, and short ones take longer: the mean over batches
    # is what an epoch is made of, the median would hide the slow ones. Warming up is left out.
    warm = min(_WARMUP_STEPS, len(seconds) - 1)
    per_word = sum(seconds[warm:]) / sum(words[warm:])
    mean_words = statistics.mean(words)
    return Throughput(per_word * mean_words, mean_words, peak_memory())


def time_evaluation(train_module: Pretraining) -> float:
    """Seconds that one evaluation on the way takes, by doing a part of it."""
    every = train_module.held_out_targets
    sample = every[:: max(1, len(every) // 3)]  # of short and of long sentences
    if not sample:
        return 0.0
    evaluate_targets(train_module.module, sample[:1])  # warming up
    began = time.perf_counter()
    evaluate_targets(train_module.module, sample)
    seconds = time.perf_counter() - began
    return seconds * _num_words(every) / _num_words(sample)


def _num_words(every: Sequence[TrainingTargets]) -> int:
    return sum(targets.num_words for targets in every)


def peak_memory() -> int:
    """Most bytes this process has held so far; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024
