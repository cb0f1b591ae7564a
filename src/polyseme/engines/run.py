"""Run a job over all its inputs on the chosen engine, and tidy up what earlier runs left.

Only one run at a time may write to a folder; a second one is refused.
"""

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from polyseme.engines.commit import (
    RECEIPTS,
    Receipt,
    ShardInput,
    ShardJob,
    commit_shard,
    read_receipt,
)
from polyseme.engines.settings import EngineConfig, LocalConfig, RayConfig
from polyseme.engines.watch import Watch
from polyseme.errors import EngineError
from polyseme.files import WORK, disk_faults_explained

OnProgress = Callable[[int], None]


def run_job(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    folder: Path,
    *,
    engine: EngineConfig,
    on_progress: OnProgress = lambda _: None,
) -> list[Receipt]:
    """Commit every shard, then return their receipts in the order of `inputs`.

    `on_progress` is told now and then, from another thread, how much of all sizes is done.
    """
    names = [shard.name for shard in inputs]
    assert len(set(names)) == len(names), "shard names must differ"
    folder.mkdir(parents=True, exist_ok=True)
    with disk_faults_explained(folder), hold_folder(folder), _work_folder(folder) as run:
        _forget_shards_not_in(folder, set(names))
        were_there = set()
        with Watch(folder / WORK / run, on_progress) as watch:
            for shard, receipt in _receipts(job, inputs, folder, run=run, engine=engine):
                watch.add(shard.size)
                if receipt.was_there:
                    were_there.add(shard.name)
        receipts = [
            replace(_required(folder, name), was_there=name in were_there) for name in names
        ]
        _remove_strays(job, receipts, folder)
        return receipts


def _receipts(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    folder: Path,
    *,
    run: str,
    engine: EngineConfig,
) -> Iterator[tuple[ShardInput, Receipt]]:
    match engine:
        case LocalConfig() if engine.workers == 1 or len(inputs) == 1:
            return ((shard, commit_shard(job, shard, folder, run)) for shard in inputs)
        case LocalConfig():
            from polyseme.engines.local import run_locally

            return run_locally(job, inputs, folder, run, workers=engine.workers)
        case RayConfig():
            from polyseme.engines.cluster import run_on_ray

            return run_on_ray(job, inputs, folder, run, engine=engine)


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Keep every other run out of a folder. May be held around `run_job`, which holds it too."""
    path = folder / ".lock"
    lock = FileLock(path, is_singleton=True)  # one lock for one path, so that it can be held twice
    is_outermost = not lock.is_locked
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise EngineError(
            f"Another run is writing to {folder}. Wait for it, or choose another --out."
        ) from error
    try:
        yield
    finally:
        # Removed while still held: a moment later the name may be another run's lock. Windows
        # removes it by itself.
        if is_outermost and os.name != "nt":
            path.unlink(missing_ok=True)
        lock.release()


@contextlib.contextmanager
def _work_folder(folder: Path) -> Iterator[str]:
    """Give this run a work folder of its own, and take away those of all runs before."""
    work = folder / WORK
    run = uuid.uuid4().hex
    try:
        _clear(work)
        (work / run).mkdir(parents=True)
        yield run
    finally:
        _clear(work)


def _clear(work: Path) -> None:
    """Remove a work folder, though survivors of an earlier run may be writing in it."""
    # Renamed first, in one step: a survivor could fill a folder as fast as it is being emptied.
    for path in work.glob("*"):
        with contextlib.suppress(OSError):
            path.rename(work / f"over-{uuid.uuid4().hex}")
    shutil.rmtree(work, ignore_errors=True)


def _forget_shards_not_in(folder: Path, names: set[str]) -> None:
    """Remove shards an earlier plan made and this one does not have, receipt first."""
    for path in sorted((folder / RECEIPTS).glob("*.json")):
        if path.stem not in names:
            receipt = read_receipt(folder, path.stem)
            path.unlink()
            for name in receipt.files if receipt else {}:
                (folder / name).unlink(missing_ok=True)


def _remove_strays(job: ShardJob, receipts: Sequence[Receipt], folder: Path) -> None:
    """Remove what shards once had and have no more, or had when their receipts were lost."""
    named = {folder / name for receipt in receipts for name in receipt.files}
    for top in job.folders:
        for path in sorted((folder / top).rglob("*")):
            if path.is_file() and path not in named:
                path.unlink()


def _required(folder: Path, name: str) -> Receipt:
    receipt = read_receipt(folder, name)
    if receipt is None:
        raise EngineError(
            f"The receipt of {name} has vanished from {folder} during the run. Something else "
            "removes files there; stop it and run the same command again."
        )
    return receipt
