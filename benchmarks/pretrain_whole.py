"""The whole training loop, and each precision, against nothing but forward, backward and AdamW."""

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from benchmarks.side_by_side import compare, print_facts, print_table, take_turns, verdict
from polyseme.cli.terminal import RichProgress
from polyseme.data.stream import BatchConfig, SentenceStream
from polyseme.data.vocabulary import Vocabulary
from polyseme.model import Model
from polyseme.objectives.targets import TrainingTargets
from polyseme.pretraining.plan import preset_named, resolve_training
from polyseme.pretraining.settings import RunConfig
from polyseme.pretraining.train_module import Pretraining
from polyseme.text.corpus import Corpus
from polyseme.training.checkpoint import Checkpoint, Checkpoints
from polyseme.training.curve import read_log
from polyseme.training.loop import train
from polyseme.training.memory import keep_freed_memory
from polyseme.training.optimizer import build_optimizer, set_learning_rate
from polyseme.training.runlog import NAME as RUN_LOG
from polyseme.training.schedule import learning_rate_at
from polyseme.training.settings import TrainingConfig
from polyseme.training.train_module import Position

_SEED = 1
_SAVE_SECONDS = 60 * TrainingConfig(steps=1).save_minutes


@dataclass(frozen=True)
class Run:
    """All steps but the first, which pays for the start."""

    words: int
    seconds: float
    loss: float
    """Of the last step: that of another way to do the same work shows that it was the same."""
    saving: float = 0.0
    """Seconds of these in which a checkpoint was written."""

    @property
    def speed(self) -> float:
        """Words read in a second."""
        return self.words / self.seconds

    @property
    def usual_speed(self) -> float:
        """As `speed`, with checkpoints as far apart as they are by default."""
        return self.words / ((self.seconds - self.saving) * (1 + self.saving / _SAVE_SECONDS))


class _Unmeasured(Pretraining):
    """Begins where it is told and measures nothing: neither start nor end is timed."""

    start: Position

    def batches(self, position: Position) -> Iterator[tuple[TrainingTargets, Position]]:
        return super().batches(position or self.start)

    def evaluate(self) -> dict[str, float]:
        return {}


class Workload:
    """A model to train anew as often as wanted, and the batches it will meet."""

    def __init__(self, args: argparse.Namespace) -> None:
        keep_freed_memory()
        torch.set_flush_denormal(True)
        self.preset = preset_named(args.preset)
        self.corpus = Corpus.open(Path(args.corpus))
        self.vocabulary = Vocabulary.of(self.corpus, self.preset.model.vocabulary)
        # One row group, not several: the text is read in smaller portions but as often for each
        # word, so that a short run has its share of reading.
        words = args.words or self.preset.batches.words
        self.batches = BatchConfig(words=words, window=1)
        train_module = self.train_module({})
        self.start = _before_next_window(train_module.stream, args.steps // 2)
        stream = self.train_module(self.start).batches({})
        self.targets = [one for one, _ in itertools.islice(stream, args.steps)]
        stream.close()  # type: ignore[attr-defined]

    def train_module(self, start: Position) -> _Unmeasured:
        """An untrained model, always with the same weights."""
        torch.manual_seed(_SEED)
        model = Model.new(self.preset.model, self.vocabulary, self.corpus.preparation)
        made = _Unmeasured(model, self.corpus, self.batches, seed=_SEED, held_out_words=1)
        made.start = start
        return made

    def training(self, precision: str) -> TrainingConfig:
        """Settings with nothing measured on the way and one checkpoint in the middle."""
        steps = len(self.targets)
        wanted: dict[str, Any] = {
            "precision": precision,
            "seed": _SEED,
            "device": "cpu",
            "save_steps": steps // 2 + 1,
            "save_minutes": 1e6,
            "evaluate_every": steps + 1,
        }
        return resolve_training(RunConfig.model_validate(wanted), self.preset, steps)

    @property
    def timed_words(self) -> int:
        """Words of all steps but the first."""
        return sum(one.num_words for one in self.targets[1:])


def whole(args: argparse.Namespace) -> None:
    """The loop with reading, log, progress and a checkpoint against the bare step."""
    print_facts()
    work = Workload(args)
    training = work.training(args.precision)
    runs = take_turns(
        {
            "pretrain": lambda: run_loop(work, training),
            "bare step": lambda: run_bare(work, training),
        },
        args.repeats,
    )
    print(
        f"{args.preset}, {training.precision}, {len(work.targets)} steps of at most "
        f"{work.batches.words:,} words, medians of {args.repeats}"
    )
    _print_runs(runs)
    loop, bare = runs["pretrain"], runs["bare step"]
    ratio, told = compare([run.speed for run in loop], [run.speed for run in bare])
    saving = statistics.median(run.saving for run in loop)
    print(f"pretrain / bare step, a checkpoint of {saving:.2f} s within: {told}")
    print(f"  {verdict(ratio, 0.95)}")
    ratio, told = compare([run.usual_speed for run in loop], [run.speed for run in bare])
    print(f"pretrain / bare step, a checkpoint every {_SAVE_SECONDS:.0f} s, as usual: {told}")
    print(f"  {verdict(ratio, 0.95)}")


def precision(args: argparse.Namespace) -> None:
    """The bare step in bfloat16 against float32."""
    print_facts()
    work = Workload(args)
    kinds = ("bfloat16", "float32")
    settings: Mapping[str, TrainingConfig] = {kind: work.training(kind) for kind in kinds}
    runs = take_turns(
        {kind: lambda kind=kind: run_bare(work, settings[kind]) for kind in kinds},  # type: ignore[misc]
        args.repeats,
    )
    print(f"{args.preset}, bare step, {len(work.targets)} steps, medians of {args.repeats}")
    _print_runs(runs)
    _, told = compare(*([run.speed for run in runs[kind]] for kind in kinds))
    print(f"bfloat16 / float32: {told}")


def run_loop(work: Workload, training: TrainingConfig) -> Run:
    """`pretrain` as the command does it, timed by its own log."""
    train_module = work.train_module(work.start)
    pauses: list[float] = []
    save = Checkpoints.save

    def timed_save(*given: Any, **named: Any) -> None:
        began = time.perf_counter()
        save(*given, **named)
        checkpoint: Checkpoint = given[1]
        if checkpoint.state["step"] < training.steps:  # the last one comes after the last step
            pauses.append(time.perf_counter() - began)

    with (
        tempfile.TemporaryDirectory(prefix="polyseme-benchmark-") as folder,
        mock.patch.object(Checkpoints, "save", timed_save),
        RichProgress() as bars,
    ):
        train(train_module, training, Path(folder), progress=bars)
        steps = [line for line in read_log(Path(folder) / RUN_LOG) if "loss" in line]
    first, last = steps[0], steps[-1]
    seconds = last["seconds"] - first["seconds"]
    return Run(work.timed_words, seconds, last["loss"], sum(pauses))


def run_bare(work: Workload, training: TrainingConfig) -> Run:
    """Forward, backward, clip, AdamW; the batches are there already."""
    network = work.train_module({}).module.train()
    optimizer = build_optimizer(network, training)
    parameters = list(network.parameters())
    is_short = training.precision == "bfloat16"
    began = 0.0
    for step, one in enumerate(work.targets):
        if step == 1:
            began = time.perf_counter()
        set_learning_rate(optimizer, learning_rate_at(step, training))
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_short):
            sums = network(one)
        loss = torch.stack([sums[part].float() / n for part, n in one.counts.items()]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, training.max_grad_norm)
        optimizer.step()
    return Run(work.timed_words, time.perf_counter() - began, loss.item())


def _before_next_window(stream: SentenceStream, batches: int) -> Position:
    """So many batches before the first window ends: the next is read in the middle of a run."""
    ends = enumerate((after["epoch"] + after["window"] for _, after in stream({})), start=1)
    in_window = next(number for number, is_next in ends if is_next)
    return {"epoch": 0, "window": 0, "batch": max(0, in_window - batches)}


def _print_runs(runs: Mapping[str, list[Run]]) -> None:
    rows = [
        (
            name,
            f"{statistics.median(run.speed for run in done):,.0f}",
            " ".join(f"{run.speed:,.0f}" for run in done),
            f"{done[-1].loss:.4f}",
        )
        for name, done in runs.items()
    ]
    print_table(("", "words/s", "each run", "last loss"), rows)
