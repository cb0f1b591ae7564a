"""One process or many: who I am, the few things processes tell each other, and how many threads.

`torchrun` starts the processes and tells each its rank through environment variables. With a
single process, torch.distributed is never touched.

Threads meet at every multiplication, and the last one keeps all others waiting. Where another
program takes a core, two threads can be several times slower than one. So real steps are timed with
all threads, half of them and so on down to one; the fastest number is kept, and all are timed again
when steps have become slower, or now and then while not all are used. No step is wasted; but sums
are split otherwise with another number of threads, so the last bits depend on what else ran.
"""

import contextlib
import gc
import json
import os
import statistics
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.devices import choose_device
from polyseme.errors import TrainingError
from polyseme.training import TrainingConfig


@dataclass(frozen=True)
class DistributedContext:
    """This process among all that share the work."""

    rank: int
    world_size: int
    device: str

    @property
    def is_main(self) -> bool:
        """Only the first reads and writes files, and measures."""
        return self.rank == 0

    def all_reduce(self, values: Tensor) -> Tensor:
        """Values summed over all processes."""
        if self.world_size > 1:
            torch.distributed.all_reduce(values)
        return values

    def broadcast(self, tensor: Tensor) -> None:
        """Overwrite a tensor with the first process's."""
        if self.world_size > 1:
            torch.distributed.broadcast(tensor, src=0)

    def broadcast_object(self, value: Any) -> Any:
        """The first process's value, as JSON; what others pass is not looked at."""
        if self.world_size == 1:
            return value
        # Not broadcast_object_list: it would unpack whatever came over the network as code.
        encoded = json.dumps(value).encode() if self.is_main else b""
        length = torch.tensor([len(encoded)], device=self.device)
        self.broadcast(length)
        buffer = torch.zeros(int(length.item()), dtype=torch.uint8, device=self.device)
        if self.is_main:
            buffer.copy_(torch.frombuffer(bytearray(encoded), dtype=torch.uint8))
        self.broadcast(buffer)
        return json.loads(bytes(buffer.tolist()))

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module as it is called: with gradients averaged over the processes."""
        if self.world_size == 1:
            return module
        device_ids = [torch.device(self.device)] if self.device.startswith("cuda") else None
        return nn.parallel.DistributedDataParallel(
            module, device_ids=device_ids, gradient_as_bucket_view=True
        )


def num_processes() -> int:
    """How many processes share the work."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Whether this one speaks and writes for all."""
    return os.environ.get("RANK", "0") == "0"


def own_shards(gradient_accumulation_steps: int) -> tuple[range, int] | None:
    """Which shards of a step this process works on, of how many; None if it works alone."""
    if num_processes() == 1:
        return None
    first = int(os.environ["RANK"]) * gradient_accumulation_steps
    shards = range(first, first + gradient_accumulation_steps)
    return shards, num_processes() * gradient_accumulation_steps


@contextlib.contextmanager
def process_group(config: TrainingConfig) -> Iterator[DistributedContext]:
    """The processes this one belongs to, for as long as it works together."""
    world_size = num_processes()
    device = choose_device(None if config.device == "auto" else config.device)
    if world_size == 1:
        yield DistributedContext(0, 1, device)
        return
    if device == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(device)
    with _lost_processes_explained(world_size, config.timeout_minutes):
        torch.distributed.init_process_group(
            "nccl" if device.startswith("cuda") else "gloo",
            timeout=timedelta(minutes=config.timeout_minutes),
        )
        try:
            yield DistributedContext(torch.distributed.get_rank(), world_size, device)
            torch.distributed.barrier()  # the first is still saving when the others are done
        finally:
            gc.collect()  # a wrapped module left over would hold the group beyond its end
            torch.distributed.destroy_process_group()


@contextlib.contextmanager
def _lost_processes_explained(world_size: int, timeout_minutes: float) -> Iterator[None]:
    """Say in words that another process has died or hangs; this one cannot go on without it."""
    try:
        yield
    except RuntimeError as error:
        # gloo has no class of errors of its own: only its name stands in what it says.
        if not isinstance(error, torch.distributed.DistError) and "gloo" not in str(error):
            raise
        is_late = "timed out" in str(error).lower()
        fault = "has ended before the others"
        if is_late:
            fault = f"did not answer for {60 * timeout_minutes:,.0f} s (training.timeout_minutes)"
        raise TrainingError(
            f"One of the {world_size} processes {fault}, so this one stops, too. The last output "
            "of that process tells why. The same command resumes from the newest checkpoint."
        ) from error


_TRIAL_STEPS = 2  # with each number; the faster counts, as the first pays for the change
_WINDOW = 8  # steps whose median is the pace at the time
_SLOWER = 1.5  # times the pace that a number was chosen for
_HOPE_STEPS = 200  # until all threads are tried again


class ThreadChoice:
    """The number of threads for the next step: always `most`, unless it is adaptive."""

    def __init__(self, most: int, *, is_adaptive: bool) -> None:
        self.number = most
        halved = [most >> n for n in range(most.bit_length())]  # all, half of them, ... one
        self._candidates = halved if is_adaptive else [most]
        self._pace = dict.fromkeys(self._candidates, float("inf"))
        self._trial: list[int] = []
        self._window: deque[float] = deque(maxlen=_WINDOW)
        self._steps_kept = 0
        if len(self._candidates) > 1:
            self._begin_trial()

    def note(self, seconds: float, words: int) -> None:
        """What the step took, which was done with `number` threads."""
        if len(self._candidates) < 2:
            return
        pace = seconds / max(1, words)
        if self._trial:
            self._pace[self.number] = min(self._pace[self.number], pace)
            self._trial.pop()
            fastest = min(self._candidates, key=self._pace.__getitem__)
            self.number = self._trial[-1] if self._trial else fastest
            return
        self._window.append(pace)
        self._steps_kept += 1
        is_slower = (
            len(self._window) == _WINDOW
            and statistics.median(self._window) > _SLOWER * self._pace[self.number]
        )
        is_hopeful = self._steps_kept >= _HOPE_STEPS and self.number < self._candidates[0]
        if is_slower or is_hopeful:
            self._begin_trial()

    def _begin_trial(self) -> None:
        self._pace = dict.fromkeys(self._candidates, float("inf"))
        self._trial = [each for each in reversed(self._candidates) for _ in range(_TRIAL_STEPS)]
        self.number = self._trial[-1]
        self._window.clear()
        self._steps_kept = 0
