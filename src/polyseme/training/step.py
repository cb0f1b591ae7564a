"""One step: gradients of a batch, worked out by all processes together, then the change.

The two halves are apart so that `LossSpikeGuard` can look at the loss and the gradient before the
parameters change: one that is not finite, or a spike far above the last 128, usually means a broken
batch or a learning rate too high; one such step can undo days.
"""

import contextlib
import hashlib
import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from polyseme.errors import TrainingError
from polyseme.training import TrainingConfig
from polyseme.training.optimizer import ParamGroup, TrainBatch, build_optimizer, set_learning_rate
from polyseme.training.processes import DistributedContext

_WINDOW = 128
_SIGMAS = 6.0
# A window of nearly equal losses has next to no variance; a spike must also be one of this size.
_RELATIVE_FLOOR = 0.25
_MAX_SKIPS = 20


class LossSpikeGuard:
    """Says of each step whether it may be taken."""

    def __init__(
        self,
        policy: Literal["raise", "skip"],
        losses: Sequence[float] = (),
        consecutive_skips: int = 0,
    ) -> None:
        self._policy = policy
        self._losses = deque(losses, maxlen=_WINDOW)
        self.consecutive_skips = consecutive_skips
        """How many steps have just been skipped, one after the other."""

    @property
    def losses(self) -> list[float]:
        """The last losses that were let through."""
        return list(self._losses)

    def check(self, loss: float, gradient_norm: float, *, step: int) -> bool:
        """True if the step may be taken, False if it is to be skipped; or a TrainingError."""
        fault = self._fault(loss, gradient_norm)
        if fault is None:
            self._losses.append(loss)
            self.consecutive_skips = 0
            return True
        if self._policy == "raise":
            raise TrainingError(
                f"Stopped before step {step:,}: {fault}. The parameters are as they were before "
                "it, and saved. Run again with --set training.on_nonfinite=skip to skip such "
                "steps; if there are many, start again in another folder with a lower "
                "training.learning_rate."
            )
        self.consecutive_skips += 1
        if self.consecutive_skips >= _MAX_SKIPS:
            raise TrainingError(
                f"Stopped at step {step:,}: {_MAX_SKIPS} steps in a row had to be skipped, the "
                f"last because {fault}. Start again in another folder with a lower "
                "training.learning_rate, or look at the data."
            )
        return False

    def _fault(self, loss: float, gradient_norm: float) -> str | None:
        """What is wrong with a step, in words."""
        if not math.isfinite(loss):
            return f"the loss is {loss}"
        if not math.isfinite(gradient_norm):
            return f"the norm of the gradient is {gradient_norm}"
        if len(self._losses) < _WINDOW or not self._is_spike(loss):
            return None
        usual = sum(self._losses) / _WINDOW
        return (
            f"the loss spiked to {loss:.4g}, while the last {_WINDOW} were {usual:.4g} on average"
        )

    def _is_spike(self, loss: float) -> bool:
        """Whether a loss lies far above all that could be expected from those before it."""
        mean = sum(self._losses) / _WINDOW
        if loss <= mean + _RELATIVE_FLOOR * abs(mean):
            return False
        mean, sigma = _mean_std(self._losses)
        if loss <= mean + _SIGMAS * sigma:
            return False
        if min(self._losses) <= 0:
            return True
        # Losses of small batches have a long tail upwards, where six sigma are not rare. Their
        # logarithms have none, and a true spike is far out on that scale too.
        mean, sigma = _mean_std([math.log(one) for one in self._losses])
        return math.log(loss) > mean + _SIGMAS * sigma


def _mean_std(values: Collection[float]) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((one - mean) ** 2 for one in values) / len(values))


@dataclass(frozen=True)
class StepResult:
    """Loss and gradient norm of a batch, before the parameters change; equal in every process."""

    parts: dict[str, float]
    """Each part of the loss, as mean over the whole batch's predictions."""
    gradient_norm: float
    wants_stop: bool
    """Whether any process has been asked to stop."""

    @property
    def loss(self) -> float:
        """What is made smaller."""
        return sum(self.parts.values())


class Stepper:
    """Changes a module's parameters, batch by batch."""

    def __init__(
        self,
        module: nn.Module,
        config: TrainingConfig,
        distributed: DistributedContext,
        param_groups: Mapping[str, ParamGroup] | None = None,
    ) -> None:
        self._config = config
        self._distributed = distributed
        self._module = module
        self._wrapped = module
        self.optimizer = build_optimizer(module, config, param_groups)
        self._trained = [p for p in module.parameters() if p.requires_grad]

    def wrap(self) -> None:
        """Begin to work with the other processes, all with the first one's weights."""
        self._wrapped = self._distributed.wrap(self._module)

    def unwrap(self) -> None:
        """End the work with the other processes."""
        self._wrapped = self._module

    def forward_backward(self, batch: TrainBatch, *, step: int, wants_stop: bool) -> StepResult:
        """Work out loss and gradients of a batch. Waits for the device once, at the end."""
        self.optimizer.zero_grad()
        k = self._config.gradient_accumulation_steps
        parts = sum(
            self._backward(batch, self._distributed.rank * k + j, step=step, is_last=j == k - 1)
            for j in range(k)
        )
        assert isinstance(parts, Tensor)
        norm = get_total_norm([p.grad for p in self._trained if p.grad is not None])
        # The norm is that of the gradients of all, alike everywhere but for the last bit; its
        # mean is alike to the last bit, so that no process decides otherwise than the rest.
        others = [norm / self._distributed.world_size, norm.new_tensor(float(wants_stop))]
        values = self._distributed.all_reduce(torch.cat([parts, torch.stack(others)])).tolist()
        *losses, gradient_norm, stops = values
        return StepResult(dict(zip(batch.counts, losses, strict=True)), gradient_norm, stops > 0)

    def optimizer_step(self, gradient_norm: float, learning_rate: float) -> None:
        """Change the parameters by the gradients just worked out."""
        if gradient_norm > self._config.max_grad_norm:
            norm = torch.tensor(gradient_norm, device=self._distributed.device)
            clip_grads_with_norm_(self._trained, self._config.max_grad_norm, norm)
        set_learning_rate(self.optimizer, learning_rate)
        self.optimizer.step()

    def _backward(self, batch: TrainBatch, rank: int, *, step: int, is_last: bool) -> Tensor:
        """Add one shard's gradients to those there. Returns its part of each loss, (parts,)."""
        num_shards = self._distributed.world_size * self._config.gradient_accumulation_steps
        shard = batch if num_shards == 1 else batch.shard(rank, num_shards)
        # A shard's seed comes from its rank: nothing to save, nothing that depends on how many
        # processes there are or what one of them did before.
        _seed(shard_seed(self._config.seed, step, rank), self._distributed.device)
        with self._no_sync(is_last):
            with self._autocast():
                sums = self._wrapped(shard.to(self._distributed.device))
            parts = torch.stack([sums[p].float() / max(1, n) for p, n in batch.counts.items()])
            # Averaged over processes on the way; we want the sum.
            (parts.sum() * self._distributed.world_size).backward()  # type: ignore[no-untyped-call]
        return parts.detach()

    def _autocast(self) -> Any:
        if self._config.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self._distributed.device.split(":")[0], dtype=torch.bfloat16)

    def _no_sync(self, is_last: bool) -> Any:
        """Gradients are averaged over processes once a step, with the last shard."""
        if is_last or not isinstance(self._wrapped, nn.parallel.DistributedDataParallel):
            return contextlib.nullcontext()
        return self._wrapped.no_sync()


def shard_seed(seed: int, step: int, rank: int) -> int:
    """A seed of its own for each step and shard."""
    digest = hashlib.sha256(f"{seed} {step} {rank}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _seed(seed: int, device: str) -> None:
    """Seed what a module on this device draws from.

    Not torch.manual_seed: it speaks to every kind of device there could be, for half a millisecond.
    """
    torch.default_generator.manual_seed(seed)
    if device.startswith("cuda"):
        torch.cuda.manual_seed(seed)
    elif device == "mps":
        torch.mps.manual_seed(seed)
