"""AdamW over a module's parameters, and its memory as named tensors."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from polyseme.errors import TrainingError
from polyseme.training.settings import TrainingConfig

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def build_optimizer(module: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW; only matrices decay, for a bias or a scale pulled to zero serves nothing."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not trained:
        raise TrainingError("Nothing to train: every parameter is frozen.")
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        fused=trained[0].device.type in ("cpu", "cuda"),
    )


def moments_of(optimizer: torch.optim.AdamW, module: nn.Module) -> dict[str, Tensor]:
    """What the optimizer remembers, as `moment/parameter`. Settings are not part of it."""
    return {
        f"{moment}/{name}": optimizer.state[parameter][moment]
        for name, parameter in module.named_parameters()
        if parameter in optimizer.state
        for moment in _MOMENTS
    }


def restore_moments(
    optimizer: torch.optim.AdamW, module: nn.Module, moments: Mapping[str, Tensor]
) -> None:
    """Make an optimizer remember what `moments_of` gave."""
    left = dict(moments)
    for name, parameter in module.named_parameters():
        keys = [f"{moment}/{name}" for moment in _MOMENTS]
        if not any(key in left for key in keys):
            continue  # it has never had a gradient
        step, mean, square = (left.pop(key, None) for key in keys)
        if step is None or mean is None or square is None:
            raise TrainingError(f"The optimizer's memory of {name} is not complete.")
        if not mean.shape == square.shape == parameter.shape:
            raise TrainingError(f"The optimizer's memory of {name} does not fit the parameter.")
        place = parameter.device
        optimizer.state[parameter] = {
            "step": step.to(place if optimizer.defaults["fused"] else "cpu"),
            "exp_avg": mean.to(place),
            "exp_avg_sq": square.to(place),
        }
    if left:
        raise TrainingError(f"The optimizer remembers parameters that are not there: {list(left)}.")
