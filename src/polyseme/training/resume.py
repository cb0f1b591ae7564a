"""Finding a run as it was left, and making sure that it is the same run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from polyseme import __version__
from polyseme.errors import ConfigError
from polyseme.training.checkpoint import Checkpoint, Checkpoints, restore_weights
from polyseme.training.optimizer import moments_of, restore_moments
from polyseme.training.processes import Crew
from polyseme.training.settings import TrainingConfig, numbers_of
from polyseme.training.state import RunState
from polyseme.training.trainee import Trainee


@dataclass(frozen=True)
class Restored:
    """The state to go on from, and what was found to be damaged on the way there."""

    state: RunState
    refused: dict[str, str]
    """Checkpoints set aside, each with the reason."""
    is_new: bool
    note: str = ""
    """What the user should know of the sitting before."""


def fingerprint_of(trainee: Trainee, config: TrainingConfig) -> dict[str, Any]:
    """What must stay the same while a run is continued, as JSON gives it back."""
    whole = {"trainee": trainee.fingerprint(), "training": numbers_of(config)}
    again: dict[str, Any] = json.loads(json.dumps(whole))
    return again


def surroundings() -> dict[str, Any]:
    """What changes the last bits of a result without being a setting; kept for the record."""
    return {
        "polyseme": __version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def restore(
    module: nn.Module,
    optimizer: torch.optim.AdamW,
    checkpoints: Checkpoints,
    *,
    fingerprint: dict[str, Any],
    crew: Crew,
) -> Restored:
    """Put the newest sound checkpoint into module and optimizer, in every process.

    Only the first process reads files; the others hear from it.
    """
    faults: dict[int, str] = {}
    found: Checkpoint | None = None
    if crew.is_first:
        found = checkpoints.load_newest(faults.__setitem__)
    if found is not None:
        _check_same_run(found.state["fingerprint"], fingerprint)
        restore_weights(module, found.weights)
        restore_moments(optimizer, module, found.moments)
    refused = {str(checkpoints.set_aside(step)): fault for step, fault in faults.items()}
    said = crew.hear_first(
        None
        if found is None
        else {"run": found.state["run"], "moments": _shapes(found.moments), "note": _note(found)}
    )
    if said is None:
        return Restored(RunState(), refused, is_new=True)
    if crew.size > 1:
        _hear_moments(module, optimizer, said["moments"], crew)
    return Restored(RunState.from_json(said["run"]), refused, is_new=False, note=said["note"])


def _hear_moments(
    module: nn.Module, optimizer: torch.optim.AdamW, shapes: dict[str, list[int]], crew: Crew
) -> None:
    """The optimizer's memory, from the first process to all others."""
    if not crew.is_first:
        empty = {name: torch.zeros(shape) for name, shape in shapes.items()}
        restore_moments(optimizer, module, empty)
    own = moments_of(optimizer, module)
    for name in shapes:
        on_device = own[name].to(crew.device)
        crew.take_from_first(on_device)
        own[name].copy_(on_device)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, list[int]]:
    return {name: list(tensor.shape) for name, tensor in tensors.items()}


def _note(found: Checkpoint) -> str:
    """A warning if this sitting cannot repeat the bits of the one before."""
    before, now = found.state["made_with"], surroundings()
    changed = [
        f"{name} {before.get(name)}, now {now[name]}"
        for name in now
        if before.get(name) != now[name]
    ]
    return f"The last bits may differ from the sitting before: {'; '.join(changed)}." * bool(
        changed
    )


def _check_same_run(before: dict[str, Any], now: dict[str, Any]) -> None:
    old, new = _flatten(before), _flatten(now)
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


def _flatten(value: Any, name: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with dotted names."""
    if not isinstance(value, dict):
        return {name: value}
    flat: dict[str, Any] = {}
    for key, part in value.items():
        flat |= _flatten(part, f"{name}.{key}" if name else key)
    return flat
