"""AdamW over a module's parameters, its learning rate, and its memory as named tensors.

What the training loop knows of the thing it trains: a module, batches, losses. No language.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from polyseme.errors import TrainingError
from polyseme.training import TrainingConfig

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


class ParamGroup(NamedTuple):
    """How a parameter is to be trained."""

    lr_scale: float = 1.0
    """Its learning rate, as a multiple of the run's."""
    weight_decay: bool = True
    """Whether weight decay may touch it. A table of vectors must not decay: rows of words that the
    training data lacks would shrink to nothing."""


_ORDINARY = ParamGroup()


def build_optimizer(
    module: nn.Module, config: TrainingConfig, param_groups: Mapping[str, ParamGroup] | None = None
) -> torch.optim.AdamW:
    """AdamW; only matrices decay, for a bias or a scale decayed to zero serves nothing.

    `param_groups` names the parameters that are not trained as all others are.
    """
    groups: dict[ParamGroup, list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            group = (param_groups or {}).get(name, _ORDINARY)
            # The biases of two LSTMs side by side have two dimensions, and are biases still.
            is_matrix = parameter.ndim >= 2 and not name.endswith("bias")
            group = group._replace(weight_decay=group.weight_decay and is_matrix)
            groups.setdefault(group, []).append(parameter)
    if not groups:
        raise TrainingError("Nothing to train: every parameter is frozen.")
    return torch.optim.AdamW(
        [
            {
                "params": members,
                "lr_scale": group.lr_scale,
                "weight_decay": config.weight_decay if group.weight_decay else 0.0,
            }
            for group, members in groups.items()
        ],
        lr=config.learning_rate,
        fused=next(module.parameters()).device.type in ("cpu", "cuda"),
    )


def learning_rate_at(step: int, config: TrainingConfig) -> float:
    """Learning rate of a step, counted from 0: a straight rise, then the decay.

    A function of the step alone, so that nothing about it needs saving.
    """
    warmup_steps = round(config.warmup_ratio * config.steps)
    if step < warmup_steps:
        return config.learning_rate * (step + 1) / warmup_steps
    done = (step - warmup_steps) / max(1, config.steps - warmup_steps)
    match config.decay:
        case "cosine":
            return config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
        case "linear":
            return config.learning_rate * (1 - done)
        case "none":
            return config.learning_rate


def set_learning_rate(optimizer: torch.optim.AdamW, learning_rate: float) -> None:
    """Let every parameter be trained at this rate, times its own factor."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group["lr_scale"]


def optimizer_state_of(optimizer: torch.optim.AdamW, module: nn.Module) -> dict[str, Tensor]:
    """What the optimizer remembers, as `moment/parameter`. Settings are not part of it."""
    return {
        f"{moment}/{name}": optimizer.state[parameter][moment]
        for name, parameter in module.named_parameters()
        if parameter in optimizer.state
        for moment in _MOMENTS
    }


def restore_optimizer_state(
    optimizer: torch.optim.AdamW, module: nn.Module, optimizer_state: Mapping[str, Tensor]
) -> None:
    """Make an optimizer remember what `optimizer_state_of` gave."""
    left = dict(optimizer_state)
    for name, parameter in module.named_parameters():
        keys = [f"{moment}/{name}" for moment in _MOMENTS]
        if not any(key in left for key in keys):
            continue  # it has never had a gradient
        step, mean, square = (left.pop(key, None) for key in keys)
        if step is None or mean is None or square is None:
            raise TrainingError(f"The optimizer's memory of {name} is not complete.")
        if not mean.shape == square.shape == parameter.shape:
            raise TrainingError(f"The optimizer's memory of {name} does not fit the parameter.")
        device = parameter.device
        optimizer.state[parameter] = {
            "step": step.to(device if optimizer.defaults["fused"] else "cpu"),
            "exp_avg": mean.to(device),
            "exp_avg_sq": square.to(device),
        }
    if left:
        raise TrainingError(f"The optimizer remembers parameters that are not there: {list(left)}.")


Position = Mapping[str, int]
"""Where a stream of batches stands, as plain numbers; `{}` is the beginning."""


class TrainBatch(Protocol):
    """What is worked on in one step, by all processes together."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many predictions each part of the loss has."""

    @property
    def num_words(self) -> int:
        """Words read, for the log."""

    def shard(self, rank: int, world_size: int) -> "TrainBatch":
        """Shard `rank` (from 0) of `world_size`. All shards together are the whole batch."""

    def to(self, device: str) -> "TrainBatch":
        """The same on another device."""


class TrainModule(Protocol):
    """What a run improves."""

    @property
    def module(self) -> nn.Module:
        """Everything that is trained and saved. Called with a batch, it gives each part's loss,
        summed over the batch's predictions."""

    def batches(self, position: Position) -> Iterator[tuple[Any, Position]]:
        """Batches from a position on, without end, each with the position after it.

        Depends on seed and data alone: not on the number of processes, nor on restarts.
        """

    def param_groups(self) -> Mapping[str, ParamGroup]:
        """How parameters are trained that differ from the rest, by their names in the module."""

    def evaluate(self) -> dict[str, float]:
        """Measures on held-out data. The first is watched for early stopping: lower is better."""

    def fingerprint(self) -> dict[str, Any]:
        """What must be the same for a run to be continued: settings and data, as JSON."""

    def environment(self, *, device: str, precision: str) -> Mapping[str, Any]:
        """What changes the last bits of a result without being a setting, as JSON: a run goes on
        when it has changed, and tells."""


Losses = dict[str, Tensor]
"""What `module(batch)` returns: for each part its loss summed over the predictions, a scalar."""
