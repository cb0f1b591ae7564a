"""A run's state on disk, complete and proved so by its hashes, or refused; and how a run finds it.

    <folder>/checkpoints/step-000001234/   weights.safetensors, optimizer.safetensors,
                                           state.json, manifest.json (SHA-256 of the others)

A checkpoint is written under `.work`, made durable, and then renamed as a whole, so that under
`checkpoints` there are only whole ones. Disks still flip bits, and a flipped weight is as good a
number as any other, hence the hashes. `checkpoints` may be a link to another disk. Then `.work`
lies there, too, and nothing is moved or removed there but checkpoints.
"""

import errno
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from polyseme.errors import ConfigError, TrainingError
from polyseme.limits import JSON_BYTES, WEIGHTS_BYTES, check_size, read_bytes, read_json
from polyseme.storage.files import (
    WORK,
    canonical_json,
    clear_work,
    describe_file,
    is_linked,
    own_folder,
    publish_folder,
    scratch_folder,
)
from polyseme.storage.folders import listed_files
from polyseme.training import TrainingConfig, fingerprint_of
from polyseme.training.optimizer import TrainModule, optimizer_state_of, restore_optimizer_state
from polyseme.training.processes import DistributedContext


@dataclass
class RunState:
    """Everything a run must know to go on as if it had never stopped."""

    step: int = 0
    """Steps done, those skipped included."""
    position: dict[str, int] = field(default_factory=dict)
    """Where the stream of batches stands."""
    words: int = 0
    seconds: float = 0.0
    """Time spent, earlier sessions included."""
    skipped: int = 0
    """Steps the guard has skipped."""
    losses: list[float] = field(default_factory=list)
    """The guard's window."""
    consecutive_skips: int = 0
    """Steps the guard has just skipped, one after the other."""
    measures: dict[str, float] = field(default_factory=dict)
    """Held-out measures, as last taken."""
    measured_at: int = 0
    best: float | None = None
    """The lowest value of the first measure."""
    best_step: int = 0
    since_best: int = 0
    """Measurements since then."""

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "RunState":
        """The reverse of `as_json`."""
        return cls(**values)

    def as_json(self) -> dict[str, Any]:
        """Numbers survive exactly: JSON writes a float with all the digits it needs."""
        return asdict(self)

    def record_measures(self, measures: dict[str, float]) -> bool:
        """Note new measures; True if the first of them is the best so far."""
        self.measures = measures
        self.measured_at = self.step
        watched = next(iter(measures.values()), math.nan)
        if not (self.best is None or watched < self.best) or math.isnan(watched):
            self.since_best += 1
            return False
        self.best, self.best_step, self.since_best = watched, self.step, 0
        return True


@dataclass(frozen=True)
class Outcome:
    """How a finished run went, all its sessions together."""

    steps: int
    seconds: float
    words: int
    measures: dict[str, float]
    """Held-out measures, as last taken."""
    stopped_early: bool
    """Whether patience ran out before the steps did, or nothing was left to improve."""
    best_step: int
    """The step with the best first measure; 0 if nothing was measured."""
    skipped: int
    """Steps skipped because of their loss or gradient."""
    refused: int
    """Checkpoints found damaged in this session."""


_WEIGHTS, _OPTIMIZER, _STATE = "weights.safetensors", "optimizer.safetensors", "state.json"
_MANIFEST = "manifest.json"
CHECKPOINTS = "checkpoints"
"""Where they lie, in a run's folder."""
_FORMAT = 1
_STEP = re.compile(r"step-([0-9]{9,})")
_UNREADABLE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO}


class DamagedCheckpointError(TrainingError):
    """A checkpoint that is not, byte for byte, what was saved."""


@dataclass(frozen=True)
class Checkpoint:
    """What is saved of a run."""

    weights: Mapping[str, Tensor]
    optimizer_state: Mapping[str, Tensor]
    """The optimizer's memory."""
    state: dict[str, Any]
    """The rest, as JSON; has at least `step`."""


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path, *, keep: int) -> None:
        self._folder = folder / CHECKPOINTS
        self._is_linked = is_linked(self._folder)
        self._scratch_beside = self._folder if self._is_linked else folder  # on the same disk
        self._refused = folder / "refused"
        self._keep = keep

    def steps(self) -> list[int]:
        """Steps of which there is a checkpoint, damaged or not, in order."""
        found = (_STEP.fullmatch(path.name) for path in self._folder.glob("step-*"))
        steps = {name[0]: int(name[1]) for name in found if name}
        return sorted(step for name, step in steps.items() if name == self.path(step).name)

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self._folder / f"step-{step:09d}"

    def save(self, checkpoint: Checkpoint, *, best_step: int | None = None) -> None:
        """Return only when the checkpoint is on the disk; then remove those no longer needed."""
        step = checkpoint.state["step"]
        with scratch_folder(self._scratch_beside) as scratch:
            save_file(_unshared(checkpoint.weights), scratch / _WEIGHTS)
            save_file(_unshared(checkpoint.optimizer_state), scratch / _OPTIMIZER)
            # Not in order of names: the first measure is the one that is watched.
            (scratch / _STATE).write_text(json.dumps(checkpoint.state, indent=1), "utf-8")
            (scratch / _MANIFEST).write_bytes(_describe(scratch))
            publish_folder(scratch, self.path(step))
        self._retire_old(best_step)

    def load(self, step: int) -> Checkpoint:
        """The checkpoint of a step, or a DamagedCheckpointError that says what is wrong."""
        folder = self.path(step)
        try:
            for name in (_WEIGHTS, _OPTIMIZER):
                check_size(name, (folder / name).stat().st_size, WEIGHTS_BYTES)
            if read_bytes(folder / _MANIFEST, JSON_BYTES) != _describe(folder):
                raise DamagedCheckpointError("its files are not those its manifest names")
            state = read_json(folder / _STATE)
            if state["step"] != step:
                raise DamagedCheckpointError(f"it is of step {state['step']:,}")
            return Checkpoint(load_file(folder / _WEIGHTS), load_file(folder / _OPTIMIZER), state)
        except OSError as error:
            if error.errno not in _UNREADABLE:
                raise
            raise DamagedCheckpointError(f"{error.filename}: {error.strerror}") from error
        except (SafetensorError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise DamagedCheckpointError(f"it cannot be read: {error}") from error

    def load_newest(self, on_refused: Callable[[int, str], None]) -> Checkpoint | None:
        """The newest sound checkpoint; None if there are none at all. Changes nothing on disk."""
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self.load(step)
            except DamagedCheckpointError as error:
                on_refused(step, str(error))
        if steps:
            raise TrainingError(
                f"None of the {len(steps)} checkpoints in {self._folder} is sound. To start again, "
                "remove that folder."
            )
        return None

    def quarantine(self, step: int) -> Path:
        """Move a damaged checkpoint out of the way of the one that will take its place."""
        if self._is_linked:
            raise TrainingError(
                f"{self.path(step)} is not a sound checkpoint, and {self._folder} is a link to "
                f"{self._folder.readlink()}, where nothing is moved. Move it away yourself."
            )
        number = len(list(own_folder(self._refused).iterdir()))
        moved = self._refused / f"{number:03d}-{self.path(step).name}"
        return self.path(step).rename(moved)

    def tidy(self, *, best_step: int | None = None) -> None:
        """Do what a kill in the midst of a save has left undone."""
        self._retire_old(best_step)
        if not self._is_linked:
            clear_work(self._scratch_beside / WORK)

    def remove_all(self) -> None:
        """Remove every checkpoint, and the folder if nothing else is in it."""
        self._remove(self.steps())
        if not self._is_linked and self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _retire_old(self, best_step: int | None) -> None:
        """Keep the newest, and the best."""
        self._remove([step for step in self.steps()[: -self._keep] if step != best_step])

    def _remove(self, steps: list[int]) -> None:
        for step in steps:
            path = self.path(step)
            if not self._is_linked or _is_checkpoint(path):
                # Renamed first: a kill while it is being emptied must not leave half of one.
                with scratch_folder(self._scratch_beside) as scratch:
                    path.rename(scratch / path.name)


def load_newest(folder: Path, on_refused: Callable[[int, str], None]) -> Checkpoint | None:
    """The newest sound checkpoint of the run in a folder, if it has any."""
    return Checkpoints(folder, keep=1).load_newest(on_refused)


def restore_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put saved weights into a module they fit exactly, or say what differs."""
    own = module.state_dict()
    if missing := sorted(own.keys() - weights.keys()):
        raise TrainingError(f"The checkpoint has no {', '.join(missing)}. {_OTHER}")
    if unknown := sorted(weights.keys() - own.keys()):
        raise TrainingError(f"The checkpoint has {', '.join(unknown)}, the module not. {_OTHER}")
    for name, tensor in own.items():
        saved = weights[name]
        if (saved.shape, saved.dtype) != (tensor.shape, tensor.dtype):
            raise TrainingError(
                f"{name} is {tuple(saved.shape)} of {saved.dtype} in the checkpoint, but "
                f"{tuple(tensor.shape)} of {tensor.dtype} in the module. {_OTHER}"
            )
    module.load_state_dict(dict(weights))


_OTHER = "It was saved by another model: train in another folder."


def _describe(folder: Path) -> bytes:
    """The manifest of the files as they are. Compared as a whole, so that it guards itself."""
    files = {name: describe_file(folder / name) for name in (_WEIGHTS, _OPTIMIZER, _STATE)}
    return canonical_json({"format": _FORMAT, "files": files}).encode()


def _is_checkpoint(folder: Path) -> bool:
    """Whether all that is in a folder are files of a checkpoint, as long as its manifest tells."""
    try:
        files = listed_files(read_json(folder / _MANIFEST))
        sizes = {path.name: path.lstat().st_size for path in folder.iterdir()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    del sizes[_MANIFEST]
    return not folder.is_symlink() and sizes == {name: files[name]["bytes"] for name in files}


def _unshared(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that share no memory, as the format demands; tied weights are written twice."""
    unshared: dict[str, Tensor] = {}
    seen = set()
    for name, tensor in ((name, tensor.detach()) for name, tensor in tensors.items()):
        storage = tensor.untyped_storage().data_ptr()
        unshared[name] = tensor.clone() if storage in seen else tensor.contiguous()
        seen.add(storage)
    return unshared


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
        shapes = {name: list(each.shape) for name, each in found.optimizer_state.items()}
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
