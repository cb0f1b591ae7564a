"""What each softmax costs, in time and memory, as the vocabulary grows."""

import argparse
import resource
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.side_by_side import print_facts, print_table
from polyseme.objectives.softmaxes import (
    AdaptiveSoftmaxConfig,
    FullSoftmaxConfig,
    SampledSoftmaxConfig,
    SoftmaxConfig,
    build_softmax,
)
from polyseme.training.memory import keep_freed_memory

_KINDS: dict[str, SoftmaxConfig] = {
    "sampled 2,048": SampledSoftmaxConfig(num_samples=2048),
    "sampled 8,192": SampledSoftmaxConfig(num_samples=8192),
    "full": FullSoftmaxConfig(),
    "adaptive": AdaptiveSoftmaxConfig(),
}
# A full softmax beyond this many products of words and vocabulary takes minutes: fewer words
# are timed, twice, and what is added by each word is told apart from what a step costs anyway.
_MOST = 1_000 * 200_000


@dataclass(frozen=True)
class Case:
    """One head, to be measured in a process of its own."""

    kind: str
    vocab_size: int
    width: int
    words: int
    repeats: int
    threads: int
    precision: str


@dataclass(frozen=True)
class Cost:
    """Of forward and backward."""

    seconds: float
    memory: int
    """Bytes at the peak, above the head's own weights and all that was there before."""
    weights: int
    """Bytes of these weights."""


def softmax(args: argparse.Namespace) -> None:
    """Sampled, full and adaptive softmax at growing vocabularies: time and memory."""
    print_facts()
    rows = []
    for vocab_size in args.vocab_size:
        for kind in _KINDS:
            words = args.words
            if kind == "full":
                words = max(2, min(words, _MOST // vocab_size))
            case = Case(
                *(kind, vocab_size, args.width, words, args.repeats),
                threads=torch.get_num_threads(),
                precision=args.precision,
            )
            cost, note = _cost(case, args.words)
            each = f"{1e6 * cost.seconds / args.words:,.1f}"
            rows.append(
                (
                    kind,
                    f"{vocab_size:,}",
                    each,
                    f"{cost.memory / 1e6:,.0f}",
                    f"{cost.weights / 1e6:,.0f}",
                    note,
                )
            )
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"width {args.width}, {args.words:,} words a step, {args.precision}, forward + backward")
    print_table(
        ("softmax", "words", "ms / 1,000 words", "peak MB above base", "weights MB", ""), rows
    )
    print("the gradient of the weights, as large as they are, is part of the peak")


def _cost(case: Case, words: int) -> tuple[Cost, str]:
    """The cost of a step of so many words; if the case has fewer, continued from two sizes."""
    whole = _alone(case)
    if case.words == words:
        return whole, ""
    half = _alone(Case(**{**vars(case), "words": case.words // 2}))
    each = max(0.0, whole.seconds - half.seconds) / (case.words - case.words // 2)
    seconds = whole.seconds + each * (words - case.words)
    return Cost(
        seconds, whole.memory, whole.weights
    ), f"continued from {case.words // 2} and {case.words} words"


def _alone(case: Case) -> Cost:
    """Measured in a new process: the most memory a process has held is never less again."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, case).result()


def measure(case: Case) -> Cost:
    """Median time of a step, and the most memory it held."""
    keep_freed_memory()
    torch.set_num_threads(case.threads)
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    with torch.device("meta"):  # to draw weights as usual takes twice their memory, for a moment
        head = build_softmax(_KINDS[case.kind], vocab_size=case.vocab_size, dim=case.width)
    head.to_empty(device="cpu")
    for weight in head.parameters():
        nn.init.normal_(weight, std=case.width**-0.5)
    vectors = torch.randn(case.words, case.width, dtype=getattr(torch, case.precision))
    vectors.requires_grad_()
    # Frequent words have low ids; how often each occurs, as Zipf has it.
    ranks = np.exp(random.random(case.words) * np.log(case.vocab_size - 1)).astype(np.int64)
    targets = torch.from_numpy(ranks)
    base = _peak()
    seconds = []
    for _ in range(1 + case.repeats):
        negatives = head.sample_negatives(random)  # in training another thread does it
        head.zero_grad()
        vectors.grad = None
        began = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=case.precision == "bfloat16"):
            loss: Tensor = head.losses([(vectors, targets)], table=None, negatives=negatives)[0]
        loss.backward()  # type: ignore[no-untyped-call]
        seconds.append(time.perf_counter() - began)
    weights = sum(weight.nbytes for weight in head.parameters())
    return Cost(statistics.median(seconds[1:]), _peak() - base, weights)


def _peak() -> int:
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024
