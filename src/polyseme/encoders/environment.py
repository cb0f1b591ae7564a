"""What decides the last bits of a vector besides model, text and settings.

Sums are added up in another order by another torch, another number of threads, another processor or
the compiled kernel. The vectors are as good, but not the same: files of both kinds must not be
mixed, and a result tells which it is.
"""

import torch

from polyseme import __version__
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.build import describe_processor

Environment = dict[str, str | int]
"""Names and values that are shown to users, and hashed where a hash is wanted."""


def describe(*, device: str, precision: str, threads: int | None = None) -> Environment:
    """Of work in this process; without `threads`, with as many as torch has now."""
    return {
        "polyseme": __version__,
        "torch": str(torch.__version__),
        "device": _describe_device(device),
        "processor": describe_processor(),
        "precision": precision,
        "threads": threads or torch.get_num_threads(),
        "kernel": _describe_kernel(precision) if device == "cpu" else "none",
    }


def differences(before: Environment, now: Environment) -> str:
    """What is not as it was, both values named; empty if all is."""
    return "; ".join(
        f"{name} {before.get(name, 'not recorded')}, now {now.get(name, 'not recorded')}"
        for name in now | before
        if before.get(name) != now.get(name)
    )


def _describe_device(device: str) -> str:
    if not device.startswith("cuda"):
        return device
    return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}"


def _describe_kernel(precision: str) -> str:
    kernel = loader.load()
    return "none" if kernel is None else kernel.describe(precision)
