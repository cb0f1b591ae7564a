"""A run's state on disk: complete and proved so by its hashes, or refused.

    <folder>/checkpoints/step-000001234/   weights.safetensors, optimizer.safetensors,
                                           state.json, manifest.json (SHA-256 of the others)

A checkpoint is written under `.work`, made durable, and then renamed as a whole, so that under
`checkpoints` there are only whole ones. Disks still flip bits, and a flipped weight is as good a
number as any other, hence the hashes.

`checkpoints` may be a link to another disk. Then `.work` lies there, too, and nothing is moved or
removed there but checkpoints.
"""

import errno
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from polyseme.errors import TrainingError
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
