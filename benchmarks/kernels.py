"""The compiled kernel for each instruction set against torch limited to the same instructions.

    python -m benchmarks.kernels --sets avx2,avx512 --repeats 9

What a lesser processor would gain, as far as this one can show it: torch reads how far it may go
when it starts, so each set has a process of its own, in which torch and the kernel take turns. One
batch is embedded, as `embed` does it, and one training step goes through the layers, forward and
backward. Time is processor time of one thread. Kernels are built anew.
"""

import argparse
import functools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor

from benchmarks.side_by_side import print_facts, print_table, take_turns
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.build import build
from polyseme.encoders.kernels.instructions import NEEDS, instruction_sets
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.encoders.packed_lstm import run_packed
from polyseme.storage.files import sha256_of

_SIZES = {"elmo-mini": (768, 192), "elmo-small": (1024, 128), "elmo-original": (4096, 512)}
# What torch's own loops, oneDNN and MKL may use.
_LIMITS = {"avx2": ("avx2", "AVX2", "AVX2"), "avx512": ("avx512", "AVX512_CORE", "AVX512")}
_LIMITED = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
_CLIP = 3.0
_SHORTEST, _LONGEST, _WORDS = 10, 40, 1000  # of sentences, and how many distinct ones they have


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", default="avx2,avx512,amx", help="of those that are here")
    parser.add_argument("--sizes", default="elmo-mini,elmo-small")
    parser.add_argument("--rows", type=int, default=128, help="sentences of a batch to embed")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        torch.set_num_threads(1)
        _measure(args)
        return
    print_facts()
    for name in args.sets.split(","):
        if name in instruction_sets():
            told = [*sys.argv[1:], "--alone", "--sets", name]
            limits = dict(zip(_LIMITED, _LIMITS.get(name, ()), strict=False))
            command = [sys.executable, "-m", "benchmarks.kernels", *told]
            subprocess.run(command, env={**os.environ, **limits}, check=True)


def _measure(args: argparse.Namespace) -> None:
    name = next(each for each in NEEDS if each == args.sets)
    with tempfile.TemporaryDirectory() as folder:
        path = build(Path(folder), name)
        kernel = loader.Kernel(path, sha256_of(path), name)
    rows = []
    for size in args.sizes.split(","):
        for what, work in _works(args, *_SIZES[size]).items():
            times = _time({"torch": (work, None), name: (work, kernel)}, args)
            ratios = [theirs / ours for theirs, ours in zip(*times.values(), strict=True)]
            middle = [statistics.median(each) for each in times.values()]
            told = [f"{1e3 * each:,.1f}" for each in middle]
            turns = f"{min(ratios):.2f} to {max(ratios):.2f}"
            rows.append((f"{size}, {what}", *told, f"{middle[0] / middle[1]:.2f}", turns))
    print(
        f"{kernel.describe(args.precision)}; torch's {torch.backends.cpu.get_cpu_capability()}; "
        f"{args.precision}, milliseconds, medians of {args.repeats}; ratio = torch's time / ours"
    )
    print_table(("", "torch", name, "ratio", "turns"), rows)
    print(flush=True)


def _works(
    args: argparse.Namespace, hidden_size: int, proj_size: int
) -> dict[str, Callable[[], object]]:
    torch.manual_seed(1)
    config = LstmConfig(
        hidden_size=hidden_size, proj_size=proj_size, cell_clip=_CLIP, output_clip=_CLIP
    )
    lstm = Lstm(config, "separate")
    lengths = torch.randint(_SHORTEST, _LONGEST + 1, (args.rows,))
    words = torch.randint(_WORDS, (args.rows, _LONGEST))
    vectors = torch.randn(_WORDS, proj_size)

    def embed() -> object:
        return run_packed(lstm, vectors, words[:, : int(lengths.max())], lengths)

    def train() -> None:
        """On 2,048 words, the presets' batch."""
        inputs: Tensor = vectors[words[:64, :32]].requires_grad_()
        lstm.zero_grad()
        output = lstm(inputs, torch.full((len(inputs),), inputs.shape[1]))[-1]
        output.backward(torch.ones_like(output))

    return {"embedding": embed, "training step": train}


def _time(
    contestants: dict[str, tuple[Callable[[], object], loader.Kernel | None]],
    args: argparse.Namespace,
) -> dict[str, list[float]]:
    """Seconds of each turn; the first is not counted."""

    def once(work: Callable[[], object], kernel: loader.Kernel | None) -> float:
        is_short = args.precision == "bfloat16"
        with (
            mock.patch.object(loader, "load", return_value=kernel),
            torch.autocast("cpu", torch.bfloat16, enabled=is_short),
        ):
            began = time.process_time()
            work()
            return time.process_time() - began

    found = take_turns(
        {name: functools.partial(once, *told) for name, told in contestants.items()},
        args.repeats + 1,
    )
    return {name: seconds[1:] for name, seconds in found.items()}


if __name__ == "__main__":
    main()
