"""Run a job over all its inputs on the chosen backend, and tidy up what earlier runs left.

Only one run at a time may write to a folder; a second one is refused. In a store several may work,
and each shard is done by whoever is first. Files are removed in the
output folder only where they were made: those called as shards are, directly in a folder of the
job.
"""

import contextlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from polyseme.executors.commit import (
    RECEIPTS,
    Receipt,
    ShardInput,
    ShardJob,
    Target,
    commit,
    finished_in_store,
)
from polyseme.executors.settings import ExecutorConfig
from polyseme.storage.files import WORK, clear_work, disk_faults_explained, refuse_link
from polyseme.storage.locks import hold_folder
from polyseme.storage.store import Store

OnProgress = Callable[[int], None]


def run_job(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    target: Target,
    *,
    executor: ExecutorConfig,
    on_progress: OnProgress = lambda _: None,
) -> list[Receipt]:
    """Commit every shard, then return their receipts in the order of `inputs`.

    `on_progress` is called now and then with how much of all sizes is done.
    """
    names = [shard.name for shard in inputs]
    assert len(set(names)) == len(names), "shard names must differ"
    if not isinstance(target, Path):
        return _run_to_store(job, inputs, target, Progress(inputs, on_progress), executor)
    folder = target
    folder.mkdir(parents=True, exist_ok=True)
    with disk_faults_explained(folder), hold_folder(folder), _work_folder(folder) as run:
        for top in (RECEIPTS, *job.folders):
            refuse_link(folder / top)
        progress = Progress(inputs, on_progress)
        found = {}
        for shard, receipt in _receipts(job, inputs, folder, run, progress, executor=executor):
            progress.finish(shard.name)
            found[shard.name] = receipt
        receipts = [found[name] for name in names]
        _remove_strays(job, folder, receipts)
        return receipts


def _run_to_store(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    store: Store,
    progress: "Progress",
    executor: ExecutorConfig,
) -> list[Receipt]:
    """Several runs may work at once: each shard is one's, whichever is first."""
    found = finished_in_store(job, inputs, store)
    for name in found:
        progress.finish(name)
    missing = [shard for shard in inputs if shard.name not in found]
    if missing:
        for shard, receipt in _receipts(job, missing, store, "", progress, executor=executor):
            progress.finish(shard.name)
            found[shard.name] = receipt
    return [found[shard.name] for shard in inputs]


class Progress:
    """Adds up what is done of all shards, finished or in hand."""

    def __init__(self, inputs: Sequence[ShardInput], on_progress: OnProgress) -> None:
        self._sizes = {shard.name: shard.size for shard in inputs}
        self._done: Counter[str] = Counter()
        self._on_progress = on_progress

    def add(self, name: str, amount: int) -> None:
        """So much more of a shard is done; it may be a second attempt."""
        self._done[name] = min(self._done[name] + amount, self._sizes[name])
        self._on_progress(self._done.total())

    def finish(self, name: str) -> None:
        """All of a shard is done."""
        self.add(name, self._sizes[name])


def _receipts(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    target: Target,
    run: str,
    progress: Progress,
    *,
    executor: ExecutorConfig,
) -> Iterator[tuple[ShardInput, Receipt]]:
    if executor.backend == "ray":
        from polyseme.executors.cluster import run_on_ray

        yield from run_on_ray(job, inputs, target, run, executor=executor)
    elif executor.workers == 1 or len(inputs) == 1:
        for shard in inputs:
            yield shard, commit(job, shard, target, run, partial(progress.add, shard.name))
    else:
        from polyseme.executors.local import run_locally

        yield from run_locally(job, inputs, target, run, progress.add, workers=executor.workers)


@contextlib.contextmanager
def _work_folder(folder: Path) -> Iterator[str]:
    """Give this run a work folder of its own, and take away those of all runs before."""
    work = folder / WORK
    run = uuid.uuid4().hex
    try:
        clear_work(work)
        (work / run).mkdir(parents=True)
        yield run
    finally:
        clear_work(work)


def _remove_strays(job: ShardJob, folder: Path, receipts: Sequence[Receipt]) -> None:
    """Remove shards of an earlier plan, receipt first, and files that a shard has no more."""
    kept = {f"{RECEIPTS}/{receipt.name}.json" for receipt in receipts}
    kept |= {name for receipt in receipts for name in receipt.files}
    for top in (RECEIPTS, *job.folders):
        for path in sorted((folder / top).glob("part-*")):
            # A link goes, but not what it leads to; a folder is not ours.
            if f"{top}/{path.name}" not in kept and (path.is_symlink() or not path.is_dir()):
                path.unlink(missing_ok=True)
