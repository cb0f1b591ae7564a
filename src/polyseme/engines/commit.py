"""Do one shard's work and commit it: afterwards it is there whole, with a receipt, or not at all.

The function writes into a scratch folder. Its files are made durable, hashed and moved to
their final names; the receipt, written last, is the commit. A death at any moment leaves
either no receipt (the shard is done again) or a complete shard.

Scratch folders live under `.work/<run>`. A new run deletes those of the runs before it, which
takes from any survivor of a killed run, perhaps on another machine, the means to publish
anything: a late rename finds nothing to rename.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from polyseme.errors import EngineError
from polyseme.files import canonical_json, publish, sha256_of, write_text

WORK = ".work"
RECEIPTS = "receipts"


class ShardInput(Protocol):
    """What one shard is made from. Must be picklable: it travels to the worker."""

    @property
    def name(self) -> str:
        """The shard's name, for example `part-00017`; unique within the job."""

    @property
    def size(self) -> int:
        """How much work it is, in any one unit; progress is counted in it."""

    def digest(self) -> str:
        """Hash of everything that will be read. Called where the work is done."""


@dataclass(frozen=True)
class ShardJob:
    """The function to run over all inputs, and what its results depend on besides the input."""

    work: Callable[[Any, Path], dict[str, Any]]
    """Writes files below the given folder, under their final relative names; returns counts."""
    fingerprint: str
    """Settings and code: changes whenever the same input could give another output."""
    publish: Callable[[Path, Path], None] = publish
    """Moves a finished file to its final name, atomically."""


@dataclass(frozen=True)
class Receipt:
    """Proof that a shard is complete: what it was made from and what came out."""

    name: str
    key: str
    input: str
    files: dict[str, dict[str, Any]]
    """Relative name -> bytes and sha256."""
    counts: dict[str, Any]


def commit_shard(job: ShardJob, shard: ShardInput, folder: Path, run: str) -> Receipt:
    """Make sure this shard is in `folder`, doing its work only if it is not there already."""
    digest = shard.digest()
    key = hashlib.sha256(f"{job.fingerprint}\n{digest}".encode()).hexdigest()
    found = read_receipt(folder, shard.name)
    if found is not None and found.key == key and _is_intact(found, folder):
        return found
    scratch = _open_scratch(folder, run, shard.name)
    try:
        counts = job.work(shard, scratch)
        if shard.digest() != digest:
            raise EngineError(
                f"The input of {shard.name} changed while it was being read. "
                "Let nothing write to it, then run the same command again."
            )
        files = {}
        for path in _files_below(scratch):
            name = path.relative_to(scratch).as_posix()
            files[name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for name in files:
            job.publish(scratch / name, folder / name)
        receipt = Receipt(shard.name, key, digest, files, counts)
        final = folder / RECEIPTS / f"{shard.name}.json"
        write_text(final, canonical_json(asdict(receipt)), scratch_folder=scratch)
    except FileNotFoundError as error:
        if scratch.exists():
            raise
        raise EngineError(_taken_over(folder)) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return receipt


def read_receipt(folder: Path, name: str) -> Receipt | None:
    """The receipt of a shard, or None if there is none that can be read."""
    try:
        values = json.loads((folder / RECEIPTS / f"{name}.json").read_text(encoding="utf-8"))
        return Receipt(**values)
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError, TypeError):
        return None  # damaged counts as missing: the shard is done again


def _is_intact(receipt: Receipt, folder: Path) -> bool:
    """Are the receipt's files there, byte for byte?"""
    for name, facts in receipt.files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != facts["bytes"]:
            return False
        if sha256_of(path) != facts["sha256"]:
            return False
    return True


def _open_scratch(folder: Path, run: str, name: str) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder / WORK / run))
    except FileNotFoundError as error:
        raise EngineError(_taken_over(folder)) from error


def _taken_over(folder: Path) -> str:
    return (
        f"The work folder of this run below {folder} is gone. Either another run has taken over "
        "the output folder, or this worker runs on a machine that does not see it: with Ray, the "
        "inputs and the output must lie on a file system that all nodes share."
    )


def _files_below(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())
