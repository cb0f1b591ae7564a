"""Where torch works and with how many processor threads: the only place that sets either.

Torch has one number of threads for a process, not one for a model. So it is set once, where a model
is loaded or a command begins, and never while vectors are worked out: threads that share an
embedder would take each other's number for the one to go back to.
"""

import contextlib
from collections.abc import Iterator

import torch

from polyseme.errors import ConfigError


def set_threads(number: int | None) -> None:
    """So many from now on; None leaves it as it is."""
    if number is not None and number != torch.get_num_threads():
        torch.set_num_threads(number)


@contextlib.contextmanager
def num_threads(number: int | None) -> Iterator[None]:
    """So many for as long as a call lasts; whatever was set on the way, then as before."""
    before = torch.get_num_threads()
    set_threads(number)
    try:
        yield
    finally:
        set_threads(before)


def choose_device(wish: str | None) -> str:
    """The device asked for, or the first there is of cuda, mps and cpu."""
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wish is None:
        return next(kind for kind, is_there in has.items() if is_there)
    if not has.get(wish.partition(":")[0], False):
        there = ", ".join(kind for kind, is_there in has.items() if is_there)
        raise ConfigError(f"device = {wish!r} is not available here. Available: {there}.")
    return wish
