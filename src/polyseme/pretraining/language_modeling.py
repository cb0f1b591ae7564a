"""A language model on a corpus, as the training loop sees it.

And how fast a run would go here, by a few real steps on real batches, thrown away.
"""

import contextlib
import copy
import math
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polyseme.data.stream import (
    BatchConfig,
    PlannedBatch,
    SentenceStream,
    held_out,
    prefetch,
)
from polyseme.encoders.environment import Environment, describe
from polyseme.limits import JSON_BYTES, read_text
from polyseme.model import LanguageModel, Model
from polyseme.objectives import count_targets
from polyseme.objectives.prediction import OwnTargets, TrainingTargets
from polyseme.pretraining.evaluation import evaluate_targets, fixed_targets
from polyseme.processes import keep_freed_memory
from polyseme.text.corpus import Corpus
from polyseme.training import TrainingConfig
from polyseme.training.optimizer import ParamGroup, Position
from polyseme.training.processes import process_group
from polyseme.training.step import Stepper


class Pretraining:
    """Reads a corpus, makes the objective's targets, evaluates on what was held out."""

    def __init__(
        self,
        model: Model,
        corpus: Corpus,
        batches: BatchConfig,
        *,
        seed: int,
        held_out_words: int,
        precision: str = "float32",
        only: str | None = None,
    ) -> None:
        self.model, self.corpus, self.batch_config = model, corpus, batches
        self._seed, self._held_out_words, self._precision = seed, held_out_words, precision
        self._only = only
        self.own_shards: tuple[range, int] | None = None
        """Those of a step that this process works on, and of how many; None: all, or any."""
        if only is not None:
            for name, parameter in self.module.named_parameters():
                parameter.requires_grad_(name.startswith(f"objective.{only}."))
        self.stream = SentenceStream(
            corpus, model.vocabulary, batches, seed=seed, pairs=self.module.objective.pairs
        )

    @property
    def module(self) -> LanguageModel:
        """Everything that is trained."""
        return self.model.network

    def batches(self, position: Position) -> Iterator[tuple[Any, Position]]:
        """Targets from a position on, without end, made ready while others are worked on."""
        return prefetch(self._targets(position))

    def _targets(
        self, position: Position
    ) -> Iterator[tuple[TrainingTargets | OwnTargets, Position]]:
        for planned, after in self.stream.planned(position):
            # The seed is the position in the corpus: nothing to save, nothing to restore.
            seed = [self._seed, after["epoch"], after["window"], after["batch"]]
            yield self._make(planned, np.random.default_rng(seed)), after

    def _make(
        self, planned: PlannedBatch, random: np.random.Generator
    ) -> TrainingTargets | OwnTargets:
        """What one step predicts; of several processes' steps the own sentences, where the targets
        of a sentence depend on no other."""
        make, vocabulary = self.module.objective.make_targets, self.model.vocabulary
        counts = None
        if self.own_shards is not None:
            counts = count_targets(self.module.objective, torch.from_numpy(planned.lengths))
        if counts is None or self.own_shards is None:
            return self._trained(make(planned.build(), vocabulary, random))
        shards, number = self.own_shards
        shard = np.arange(len(planned.lengths)) % number
        rows = np.flatnonzero((shard >= shards.start) & (shard < shards.stop))
        # With fewer sentences than shards, some read the first one and predict nothing.
        own = self._trained(
            make(planned.build(rows if len(rows) else slice(1)), vocabulary, random)
        )
        if not len(rows):
            own = replace(own, parts={name: part.shard(1, 2) for name, part in own.parts.items()})
        counts = {name: counts[name] for name in own.parts}
        return OwnTargets(own, shards, counts, int(planned.lengths.sum()))

    def _trained(self, targets: TrainingTargets) -> TrainingTargets:
        """Those of what is trained."""
        return targets if self._only is None else targets.only(self._only)

    def param_groups(self) -> dict[str, ParamGroup]:
        """All parameters are trained alike."""
        return {}

    def evaluate(self) -> dict[str, float]:
        """Each part's measure on held-out text; the first part predicts words: perplexity."""
        # In the run's own precision: on the way the curve counts, at the end all digits do.
        found = evaluate_targets(self.module, self.held_out_targets, precision=self._precision)
        return found.measures

    @cached_property
    def held_out_targets(self) -> list[TrainingTargets]:
        """What is to be predicted in each evaluation on the way."""
        batches = held_out(
            self.corpus,
            self.model.vocabulary,
            self.batch_config,
            limit_words=self._held_out_words,
            pairs=self.module.objective.pairs,
        )
        targets = fixed_targets(self.module, self.model.vocabulary, batches)
        return [self._trained(each) for each in targets]

    def environment(self, *, device: str, precision: str) -> Environment:
        """Versions, threads, processor, kernel."""
        return describe(device=device, precision=precision)

    def fingerprint(self) -> dict[str, Any]:
        """What must be the same for a run to be continued: model, batches and text."""
        return {
            "model": self.model.config.model_dump(mode="json"),
            "batches": self.batch_config.model_dump(mode="json"),
            "seed": self._seed,
            "corpus": self.corpus.hashes,
            **({"only": self._only} if self._only else {}),
        }


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
    if sys.platform == "linux":  # `ru_maxrss` begins there with that of whoever started the process
        found = re.search(r"VmHWM:\s*(\d+) kB", read_text(Path("/proc/self/status"), JSON_BYTES))
        return int(found[1]) * 1024 if found else 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
