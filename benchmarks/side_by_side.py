"""Things measured in turns, so that the machine's mood is in all of them; and how that is told."""

import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from polyseme.encoders.kernels import loader
from polyseme.storage.parquet import read_batches
from polyseme.text.corpus import Corpus

T = TypeVar("T")


def sentences_of(corpus: Corpus, *, is_held_out: bool | None = None) -> Iterator[list[str]]:
    """The sentences of a corpus, in its order, as lists of words: all, or those held out or not."""
    for shard in corpus.shards:
        for batch in read_batches(shard, ["held_out", "words"]):
            rows = zip(batch["held_out"].to_pylist(), batch["words"].to_pylist(), strict=True)
            yield from (words for held_out, words in rows if is_held_out in (None, held_out))


def take_turns(contestants: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, list[T]]:
    """What each contestant gives: A B C, A B C, ... as often as told."""
    found: dict[str, list[T]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, contestant in contestants.items():
            found[name].append(contestant())
    return found


def print_facts() -> None:
    """What the figures depend on, and the command that gives them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cell = "compiled" if loader.load() is not None else "by torch"
    print(
        f"{_processor()}, {cores} cores, load {os.getloadavg()[0]:.1f}; torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads, bfloat16 tiles: {_has_tiles()}; LSTM cell {cell}"
    )
    print(f"again: python -m {_module()} " + shlex.join(sys.argv[1:]) + "\n", flush=True)


def _module() -> str:
    """The benchmark that was started, as `python -m` takes it."""
    found = sys.modules["__main__"].__spec__
    return "benchmarks" if found is None else found.name


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they need to be, the first to the left and the others to the right."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    for row in (head, *rows):
        first, *others = (text for text in row)
        cells = [first.ljust(widths[0])]
        cells += [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        print("  ".join(cells).rstrip())


def verdict(ratio: float, bar: float) -> str:
    """Whether a ratio is what it should be."""
    return f"bar {bar:.2f}: {'reached' if ratio >= bar else 'MISSED'}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _has_tiles() -> str:
    return "yes" if getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)() else "no"
