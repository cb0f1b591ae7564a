"""Watches every step's loss and gradient before they may touch the parameters.

A loss that is not finite, or a spike far above the last 128, usually means a broken batch or a
learning rate too high; one such step can undo days.
"""

import math
from collections import deque
from collections.abc import Collection, Sequence
from typing import Literal

from polyseme.errors import TrainingError

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
        self._consecutive_skips = consecutive_skips

    @property
    def losses(self) -> list[float]:
        """The last losses that were let through."""
        return list(self._losses)

    @property
    def consecutive_skips(self) -> int:
        """How many steps have just been skipped, one after the other."""
        return self._consecutive_skips

    def check(self, loss: float, gradient_norm: float, *, step: int) -> bool:
        """True if the step may be taken, False if it is to be skipped; or a TrainingError."""
        fault = self._fault(loss, gradient_norm)
        if fault is None:
            self._losses.append(loss)
            self._consecutive_skips = 0
            return True
        if self._policy == "raise":
            raise TrainingError(
                f"Stopped before step {step:,}: {fault}. The parameters are as they were before "
                "it, and saved. Run again with --set training.on_nonfinite=skip to skip such "
                "steps; if there are many, start again in another folder with a lower "
                "training.learning_rate."
            )
        self._consecutive_skips += 1
        if self._consecutive_skips >= _MAX_SKIPS:
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
