"""Our LSTM layers, with clips, against torch's own, which has none: forward and backward."""

import argparse
import itertools
import math
import statistics
import time
import warnings
from collections.abc import Callable
from unittest import mock

import torch
from torch import Tensor, nn

from benchmarks.side_by_side import print_facts, print_table, take_turns, verdict
from polyseme.encoders.kernels import loader
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.training.memory import keep_freed_memory

_SIZES = {"elmo-mini": (768, 192), "elmo-small": (1024, 128), "tiny": (512, 128)}
_BAR = 0.9
_CLIP = 3.0
_WARMING = 2


class _Theirs(nn.Module):
    """Two stacks of nn.LSTM. Each is spared what ours does besides: reversing, adding, clipping."""

    def __init__(self, hidden_size: int, proj_size: int, layers: int) -> None:
        super().__init__()
        self.stacks = nn.ModuleList(
            nn.LSTM(proj_size, hidden_size, num_layers=layers, proj_size=proj_size)
            for _ in range(2)
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """(T, B, D) -> (T, B, 2 * D)"""
        return torch.cat([stack(vectors)[0] for stack in self.stacks], dim=-1)


def step(args: argparse.Namespace) -> None:
    """LSTM layers against nn.LSTM: all sizes, precisions and threads, or those asked for."""
    keep_freed_memory()
    torch.set_flush_denormal(True)
    # True, and nothing to be done about it: that torch has no faster LSTM with projections.
    warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")
    print_facts()
    sizes = dict(_SIZES)
    if args.hidden_size or args.proj_size:
        hidden_size, proj_size = (
            args.hidden_size or 4 * args.proj_size,
            args.proj_size or args.hidden_size // 4,
        )
        sizes = {"asked for": (hidden_size, proj_size)}
    rows = []
    worst = dict.fromkeys(("compiled", "by torch"), math.inf)
    for name, precision, threads in itertools.product(sizes, args.precision, args.threads):
        hidden_size, proj_size = sizes[name]
        torch.set_num_threads(threads)
        times = _time(args, hidden_size, proj_size, is_short=precision == "bfloat16")
        ratios = {way: times["nn.LSTM"] / times.get(way, math.nan) for way in worst}
        worst = {way: min(lowest, ratios[way]) for way, lowest in worst.items()}
        told = [f"{1e3 * times['nn.LSTM']:,.1f}"]
        for way, ratio in ratios.items():
            told += [f"{1e3 * times[way]:,.1f}", f"{ratio:.2f}"] if way in times else ["-", "-"]
        rows.append((f"{name} {hidden_size}/{proj_size}", precision, str(threads), *told))
    print(
        f"{args.layers} layers, both directions, {args.rows} sentences of {args.length} words; "
        f"milliseconds, medians of {args.repeats}; ratio = nn.LSTM's time / ours"
    )
    print_table(
        ("", "precision", "threads", "nn.LSTM", "compiled", "ratio", "by torch", "ratio"), rows
    )
    for way, ratio in worst.items():
        if ratio < math.inf:
            print(f"worst with the cell {way}: {ratio:.2f}, {verdict(ratio, _BAR)}")


def _time(
    args: argparse.Namespace, hidden_size: int, proj_size: int, *, is_short: bool
) -> dict[str, float]:
    """Median seconds of each contestant."""
    torch.manual_seed(1)
    config = LstmConfig(
        num_layers=args.layers,
        proj_size=proj_size,
        hidden_size=hidden_size,
        cell_clip=_CLIP,
        output_clip=_CLIP,
    )
    ours, theirs = Lstm(config, "separate"), _Theirs(hidden_size, proj_size, args.layers)
    vectors = torch.randn(args.rows, args.length, proj_size)
    lengths = torch.full((args.rows,), args.length)
    time_first = vectors.transpose(0, 1).contiguous()  # the order nn.LSTM is fastest in

    def by_torch() -> float:
        with mock.patch.object(loader, "load", return_value=None):
            return own()

    def own() -> float:
        return _once(ours, vectors, lambda read: ours(read, lengths)[-1], is_short=is_short)

    contestants: dict[str, Callable[[], float]] = {
        "nn.LSTM": lambda: _once(theirs, time_first, theirs, is_short=is_short),
        "by torch": by_torch,
    }
    if loader.load() is not None:
        contestants["compiled"] = own
    take_turns(contestants, _WARMING)
    found = take_turns(contestants, args.repeats)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def _once(
    module: nn.Module, read: Tensor, encode: Callable[[Tensor], Tensor], *, is_short: bool
) -> float:
    """Seconds of forward and backward, down to the inputs, which are learnt too."""
    module.zero_grad()
    read = read.clone().requires_grad_()
    grad = torch.ones(*read.shape[:2], 2 * read.shape[2])
    began = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=is_short):
        given = encode(read)
    given.backward(grad.to(given.dtype))  # type: ignore[no-untyped-call]
    return time.perf_counter() - began
