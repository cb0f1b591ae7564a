"""A point with changes laid over it; what is left open is settled once."""

import pytest

from polyseme.errors import ConfigError
from polyseme.objectives.softmaxes import FullSoftmaxConfig
from polyseme.presets import PRESETS
from polyseme.pretraining.run import (
    preset_named,
    resolve_model,
    resolve_training,
)
from polyseme.pretraining.settings import RunConfig


def test_changes_touch_only_what_they_name() -> None:
    preset = PRESETS["elmo-mini"]
    changed = resolve_model(preset, {"encoder": {"contextualizer": {"num_layers": 3}}})
    before = preset.model.model_dump()
    before["encoder"]["contextualizer"]["num_layers"] = 3
    assert changed.model_dump() == before
    assert resolve_model(preset, {}) == preset.model


def test_another_kind_takes_nothing_over_from_the_old_one() -> None:
    changes = {"objective": {"softmax": {"kind": "full"}}}
    changed = resolve_model(PRESETS["elmo-small"], changes)
    assert changed.objective.softmax == FullSoftmaxConfig()


def test_an_unknown_point_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="elmo-teaching"):
        preset_named("elmo-tiny")


def test_the_run_takes_the_points_learning_rate_unless_told() -> None:
    preset = PRESETS["elmo-mini"]
    assert resolve_training(RunConfig(), preset, 10).learning_rate == preset.learning_rate
    assert resolve_training(RunConfig(learning_rate=0.5), preset, 10).learning_rate == 0.5
    assert resolve_training(RunConfig(), preset, 10).steps == 10
    assert resolve_training(RunConfig(), preset, 10).precision in ("float32", "bfloat16")
