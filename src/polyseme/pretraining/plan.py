"""What a pretraining run is made of: a preset, what differs from it, nothing left open."""

from collections.abc import Mapping
from typing import Any

from polyseme.config import Settings, build, merged
from polyseme.data.stream import BatchConfig
from polyseme.devices import resolve_precision
from polyseme.errors import ConfigError
from polyseme.model import ModelConfig
from polyseme.presets import PRESETS, Preset
from polyseme.pretraining.settings import RunConfig
from polyseme.training.settings import TrainingConfig


class Plan(Settings):
    """Everything a run is made of, resolved; `plan.toml` in its folder."""

    model: ModelConfig
    """Words, encoder, objective."""
    batches: BatchConfig
    """How much text a step sees."""
    training: TrainingConfig
    """How the model is trained."""


def preset_named(name: str) -> Preset:
    """A preset by its name."""
    if name not in PRESETS:
        raise ConfigError(f"There is no preset {name!r}. There are: {', '.join(PRESETS)}.")
    return PRESETS[name]


def resolve_model(preset: Preset, changes: Mapping[str, Any]) -> ModelConfig:
    """The preset's model with some settings changed."""
    return build(ModelConfig, merged(preset.model.model_dump(), changes))


def resolve_batches(preset: Preset, changes: Mapping[str, Any]) -> BatchConfig:
    """The preset's batches with some settings changed."""
    return build(BatchConfig, merged(preset.batches.model_dump(), changes))


def resolve_training(run: RunConfig, preset: Preset, steps: int) -> TrainingConfig:
    """The run's settings with nothing left open."""
    values = run.model_dump(exclude_none=True)
    values["steps"] = steps
    values.setdefault("learning_rate", preset.learning_rate)
    values["precision"] = resolve_precision(run.precision, run.device)
    return build(TrainingConfig, values)
