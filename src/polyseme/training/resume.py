"""Finding a run as it was left, and making sure that it is the same run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.errors import ConfigError
from polyseme.training.checkpoint import Checkpoint, Checkpoints, restore_weights
from polyseme.training.optimizer import optimizer_state_of, restore_optimizer_state
from polyseme.training.processes import DistributedContext
from polyseme.training.settings import TrainingConfig, fingerprint_of
from polyseme.training.state import RunState
from polyseme.training.train_module import TrainModule

Changed = dict[str, list[Any]]
_STEPS = "training.steps"


@dataclass(frozen=True)
class Restored:
    """The state to go on from, and what was found to be damaged on the way there."""

    state: RunState
    refused: dict[str, str]
    """Checkpoints quarantined, each with the reason."""
    is_new: bool
    changed: Changed = field(default_factory=dict)
    """What has changed in the run's environment: each value before, and now."""
    steps: tuple[int, int] | None = None
    """The number of steps planned before, and now, if that has changed."""

    @property
    def note(self) -> str:
        """What the user should know of the run as it is resumed."""
        notes = []
        if self.steps is not None:
            before, now = self.steps
            schedule = "the learning rate schedule is now that of the new length"
            notes.append(f"The run has {now:,} steps instead of {before:,}; {schedule}.")
        if self.changed:
            told = (f"{name} {before}, now {now}" for name, (before, now) in self.changed.items())
            notes.append(f"The last bits may differ from the previous session: {'; '.join(told)}.")
        return " ".join(notes)


def describe_run(
    train_module: TrainModule, config: TrainingConfig, distributed: DistributedContext
) -> dict[str, Any]:
    """What a checkpoint tells of its run, as JSON gives it back.

    The fingerprint must stay the same while a run is continued; its environment may change.
    """
    whole = {
        "fingerprint": {
            "train_module": train_module.fingerprint(),
            "training": fingerprint_of(config),
        },
        "environment": train_module.environment(
            device=distributed.device, precision=config.precision
        ),
    }
    again: dict[str, Any] = json.loads(json.dumps(whole))
    return again


def restore(
    module: nn.Module,
    optimizer: torch.optim.AdamW,
    checkpoints: Checkpoints,
    *,
    described: dict[str, Any],
    distributed: DistributedContext,
) -> Restored:
    """Put the newest sound checkpoint into module and optimizer, in every process.

    Only the first process reads files; it broadcasts to the others.
    """
    faults: dict[int, str] = {}
    found: Checkpoint | None = None
    steps: tuple[int, int] | None = None
    if distributed.is_main:
        found = checkpoints.load_newest(faults.__setitem__)
    if found is not None:
        steps = _check_same_run(found.state, described)
        restore_weights(module, found.weights)
        restore_optimizer_state(optimizer, module, found.optimizer_state)
    refused = {str(checkpoints.quarantine(step)): fault for step, fault in faults.items()}
    message = None
    if found is not None:
        changed = _changed(found.state["environment"], described["environment"])
        shapes = _shapes(found.optimizer_state)
        message = {"run": found.state["run"], "optimizer_state": shapes, "changed": changed}
    message = distributed.broadcast_object(message)
    if message is None:
        return Restored(RunState(), refused, is_new=True)
    if distributed.world_size > 1:
        _broadcast_optimizer_state(module, optimizer, message["optimizer_state"], distributed)
    run = RunState.from_json(message["run"])
    return Restored(run, refused, is_new=False, changed=message["changed"], steps=steps)


def _broadcast_optimizer_state(
    module: nn.Module,
    optimizer: torch.optim.AdamW,
    shapes: dict[str, list[int]],
    distributed: DistributedContext,
) -> None:
    """The optimizer's memory, from the first process to all others."""
    if not distributed.is_main:
        empty = {name: torch.zeros(shape) for name, shape in shapes.items()}
        restore_optimizer_state(optimizer, module, empty)
    own = optimizer_state_of(optimizer, module)
    for name in shapes:
        on_device = own[name].to(distributed.device)
        distributed.broadcast(on_device)
        own[name].copy_(on_device)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, list[int]]:
    return {name: list(tensor.shape) for name, tensor in tensors.items()}


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> Changed:
    """Names with their values before and now; checkpoints of older versions tell fewer."""
    return {
        name: [before.get(name, "not recorded"), value]
        for name, value in now.items()
        if before.get(name) != value
    }


def _check_same_run(
    state: Mapping[str, Any], described: Mapping[str, Any]
) -> tuple[int, int] | None:
    """Refuse what would make it another run. Its length may change: steps before and now if so.

    What has been done stays as it is, and the learning rate is that of the new schedule.
    """
    old, new = _flatten(state["fingerprint"]), _flatten(described["fingerprint"])
    steps = old.pop(_STEPS), new.pop(_STEPS)
    changed = [
        f"{name} was {old.get(name)!r} and is now {new.get(name)!r}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    if changed:
        raise ConfigError(
            f"This folder holds another run: {'; '.join(changed)}. Train in a new folder, or go "
            "back to the settings and data of the run that is here."
        )
    if steps[1] < state["step"]:
        raise ConfigError(
            f"This run has already done {state['step']:,} steps, and {steps[1]:,} are asked for. "
            f"Give --steps {state['step']} to finish it as it is, or more to train further."
        )
    return None if steps[0] == steps[1] else steps


def _flatten(value: Any, name: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with dotted names."""
    if not isinstance(value, dict):
        return {name: value}
    flat: dict[str, Any] = {}
    for key, part in value.items():
        flat |= _flatten(part, f"{name}.{key}" if name else key)
    return flat
