"""Where torch works and with how many processor threads: the only place that sets either.

Torch has one number of threads for a process, not one for a model. So it is set once, where a model
is loaded or a command begins, and never while vectors are worked out: threads that share an
embedder would take each other's number for the one to go back to.

Torch is imported when it is needed: what groups uses by an index does without, and starts sooner.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from polyseme.errors import ConfigError
from polyseme.limits import read_text

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Part = TypeVar("Part")
Result = TypeVar("Result")


def set_threads(number: int | None) -> None:
    """Set the number of torch's CPU threads; None leaves it unchanged."""
    import torch

    if number is not None and number != torch.get_num_threads():
        torch.set_num_threads(number)


@contextlib.contextmanager
def num_threads(number: int | None) -> Iterator[None]:
    """So many for as long as a call lasts; whatever was set on the way, then as before."""
    import torch

    before = torch.get_num_threads()
    set_threads(number)
    try:
        yield
    finally:
        set_threads(before)


class _OneThread:
    """The number of threads of a whole process, so there is one of these."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._limits = contextlib.ExitStack()

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        with self._lock:
            if self._depth == 0:
                # Torch first: it keeps a number for threads that begin later, of which it would not
                # hear if the limit below had set this thread's already.
                if "torch" in sys.modules:
                    self._limits.enter_context(num_threads(1))
                self._limits.enter_context(threadpool_limits(1))
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._limits.close()


_ONE_THREAD = _OneThread()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """NumPy, SciPy, scikit-learn and torch work with one thread for as long as a call lasts.

    Sums split over threads differ in last bits, and small products on a busy machine take many
    times as long with several threads as with one. Calls may overlap, in several threads, too: the
    number from before comes back when the last of them ends.
    """
    from threadpoolctl import threadpool_limits

    # OpenMP has a number for each thread: whoever comes second must set its own.
    with _ONE_THREAD, threadpool_limits(1, user_api="openmp"):
        yield


@contextlib.contextmanager
def thread_pool() -> Iterator[ThreadPoolExecutor]:
    """As many threads of Python as torch has, or would have; their libraries use one thread each.

    For work that lets other threads run meanwhile: what it comes to does not depend on how many
    there are.
    """
    threads = _usable_threads()  # first: below, it is one
    with one_thread(), ThreadPoolExecutor(threads) as pool:
        yield pool


def _usable_threads() -> int:
    if "torch" in sys.modules:
        import torch

        return torch.get_num_threads()
    wished = os.environ.get("OMP_NUM_THREADS", "")
    if wished.isdecimal() and int(wished) > 0:
        return int(wished)
    return usable_cpus()


_LIMIT = Path("/sys/fs/cgroup/cpu.max")  # microseconds of all cores together in a period


def usable_cpus() -> int:
    """Processor cores this process may use: a scheduler may give it fewer than there are, a
    container's limit as little time as fewer would have."""
    affinity = getattr(os, "sched_getaffinity", None)  # of Linux
    number = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        time, period = map(int, read_text(_LIMIT, 1 << 10).split())
    except (OSError, ValueError):  # another system, or no limit: "max"
        return number
    return max(1, min(number, time // period))


def wait_asleep() -> None:
    """Let threads that wait for each other sleep, from when torch is imported; no bit changes.

    OpenMP's threads otherwise spin, on a core that another program, or the very thread that they
    wait for, could have used: beside a busy program, two threads were a hundred times slower than
    one. A choice made in the environment stands.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & os.environ.keys():
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"


def in_parallel(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """What the work makes of each part, as many parts at once as torch has threads, one for each.

    For batches of an LSTM: threads that share the short products of its steps wait for each other
    most of the time.
    """
    with thread_pool() as pool:
        return list(pool.map(work, parts))


def choose_device(wish: str | None) -> str:
    """The device asked for, or the first there is of cuda, mps and cpu; `auto` is the same."""
    import torch

    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wish is None or wish == "auto":
        return next(kind for kind, is_there in has.items() if is_there)
    kind, _, number = wish.partition(":")
    is_there = has.get(kind, False)
    if is_there and kind == "cuda" and number.isdecimal():
        is_there = int(number) < torch.cuda.device_count()
    if not is_there:
        there = ", ".join(kind for kind, is_there in has.items() if is_there)
        raise ConfigError(f"device = {wish!r} is not available here. Available: {there}.")
    return wish


def devices_of(device: str) -> list[str]:
    """Each card, if the device is cuda without a number; else just the device."""
    if device != "cuda":
        return [device]
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


def moved(tensor: "Tensor", device: "str | torch.device") -> "Tensor":
    """The same there. To a card it goes from page-locked memory, while work goes on here."""
    import torch

    is_far = str(device).startswith("cuda") and tensor.device.type == "cpu"
    if is_far and torch.cuda.is_available():
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def resolve_precision(wish: str, device: str = "auto") -> Literal["float32", "bfloat16"]:
    """What `auto` comes to: bfloat16 where the hardware multiplies it, else float32."""
    if wish == "auto":
        return "bfloat16" if _multiplies_bfloat16(device) else "float32"
    return "bfloat16" if wish == "bfloat16" else "float32"


def _multiplies_bfloat16(device: str) -> bool:
    """Whether bfloat16 is faster than float32 here, as far as the hardware tells."""
    import torch

    if device.partition(":")[0] in ("auto", "cuda") and torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    if device == "mps":
        return False
    has_tiles = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    return bool(has_tiles())
