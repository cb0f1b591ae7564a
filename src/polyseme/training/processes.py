"""One process or many: who I am, and the few things processes tell each other.

`torchrun` starts the processes and tells each its rank through environment variables. With a
single process, torch.distributed is never touched.
"""

import contextlib
import gc
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.devices import choose_device
from polyseme.errors import TrainingError
from polyseme.training.settings import TrainingConfig


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
