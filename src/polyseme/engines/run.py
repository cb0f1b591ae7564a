"""Run a job over all its inputs on the chosen engine, and tidy up what earlier runs left.

Only one run at a time may write to a folder; a second one is refused.
"""

import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import Field

from polyseme.config import Settings
from polyseme.engines.commit import RECEIPTS, WORK, Receipt, ShardInput, ShardJob, read_receipt
from polyseme.errors import EngineError
from polyseme.files import disk_faults_explained


class LocalConfig(Settings):
    """Worker processes on this machine."""

    kind: Literal["local"] = "local"
    workers: int = Field(default=1, ge=1)
    """How many processes work at once. With 1 the work is done in this process."""


class RayConfig(Settings):
    """Tasks on a Ray cluster, or on a private one started here for the run."""

    kind: Literal["ray"] = "ray"
    workers: int = Field(default=1, ge=1)
    """How many tasks at once on a private cluster; a cluster with an address decides itself."""
    address: str | None = None
    """Where the cluster is, for example `10.0.0.1:6379`; None starts a private one on loopback."""


EngineConfig = LocalConfig | RayConfig

OnDone = Callable[[ShardInput, Receipt], None]


def run_job(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    folder: Path,
    *,
    engine: EngineConfig,
    on_done: OnDone = lambda _shard, _receipt: None,
) -> list[Receipt]:
    """Commit every shard, then return their receipts in the order of `inputs`.

    `on_done` is called as each shard is found or finished, in no particular order.
    """
    names = [shard.name for shard in inputs]
    assert len(set(names)) == len(names), "shard names must differ"
    folder.mkdir(parents=True, exist_ok=True)
    with disk_faults_explained(folder), _only_run_in(folder) as run:
        _forget_shards_not_in(folder, set(names))
        for shard, receipt in _receipts(job, inputs, folder, run=run, engine=engine):
            on_done(shard, receipt)
        return [_required(folder, name) for name in names]


def _receipts(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    folder: Path,
    *,
    run: str,
    engine: EngineConfig,
) -> Iterator[tuple[ShardInput, Receipt]]:
    match engine:
        case LocalConfig(workers=1):
            from polyseme.engines.commit import commit_shard

            return ((shard, commit_shard(job, shard, folder, run)) for shard in inputs)
        case LocalConfig():
            from polyseme.engines.local import run_locally

            return run_locally(job, inputs, folder, run, workers=engine.workers)
        case RayConfig():
            from polyseme.engines.cluster import run_on_ray

            return run_on_ray(job, inputs, folder, run, engine=engine)


class _only_run_in:  # noqa: N801  # read as a phrase: `with _only_run_in(folder)`
    """Holds the folder for one run, and gives that run its own work folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / ".lock")

    def __enter__(self) -> str:
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise EngineError(
                f"Another run is writing to {self._folder}. Wait for it, or choose another --out."
            ) from error
        shutil.rmtree(self._folder / WORK, ignore_errors=True)
        run = uuid.uuid4().hex
        (self._folder / WORK / run).mkdir(parents=True)
        return run

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder / WORK, ignore_errors=True)
        self._lock.release()
        (self._folder / ".lock").unlink(missing_ok=True)


def _forget_shards_not_in(folder: Path, names: set[str]) -> None:
    """Remove shards an earlier plan made and this one does not have, receipt first."""
    for path in sorted((folder / RECEIPTS).glob("*.json")):
        if path.stem not in names:
            receipt = read_receipt(folder, path.stem)
            path.unlink()
            for name in receipt.files if receipt else {}:
                (folder / name).unlink(missing_ok=True)


def _required(folder: Path, name: str) -> Receipt:
    receipt = read_receipt(folder, name)
    if receipt is None:
        raise EngineError(
            f"The receipt of {name} has vanished from {folder} during the run. Something else "
            "removes files there; stop it and run the same command again."
        )
    return receipt
