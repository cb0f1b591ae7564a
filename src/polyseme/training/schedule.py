"""The learning rate as a function of the step alone, so that nothing about it needs saving."""

import math

from polyseme.training.settings import TrainingConfig


def learning_rate_at(step: int, config: TrainingConfig) -> float:
    """Learning rate of a step, counted from 0: a straight rise, then the decay."""
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
