"""Run a job over all its inputs on the chosen backend, and tidy up what earlier runs left.

Only one run at a time may write to a folder; a second one is refused.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from polyseme.errors import ExecutorError
from polyseme.executors.commit import Receipt, ShardInput, ShardJob, commit_shard, read_receipt
from polyseme.executors.outputs import (
    check_folders,
    forget_shards_not_in,
    receipts_in,
    remove_strays,
)
from polyseme.executors.settings import ExecutorConfig
from polyseme.executors.watch import ProgressPoller
from polyseme.storage.files import WORK, clear_work, disk_faults_explained
from polyseme.storage.locks import hold_folder

OnProgress = Callable[[int], None]


def run_job(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    folder: Path,
    *,
    executor: ExecutorConfig,
    on_progress: OnProgress = lambda _: None,
) -> list[Receipt]:
    """Commit every shard, then return their receipts in the order of `inputs`.

    `on_progress` is called now and then, from another thread, with how much of all sizes is done.
    """
    names = [shard.name for shard in inputs]
    assert len(set(names)) == len(names), "shard names must differ"
    folder.mkdir(parents=True, exist_ok=True)
    with disk_faults_explained(folder), hold_folder(folder), _work_folder(folder) as run:
        check_folders(job, folder)
        forget_shards_not_in(set(names), job, folder)
        before = receipts_in(folder)
        were_there = set()
        with ProgressPoller(folder / WORK / run, on_progress) as watch:
            for shard, receipt in _receipts(job, inputs, folder, run=run, executor=executor):
                watch.add(shard.size)
                if receipt.was_there:
                    were_there.add(shard.name)
        receipts = [
            replace(_required(folder, name), was_there=name in were_there) for name in names
        ]
        remove_strays(job, folder, before, receipts)
        return receipts


def _receipts(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    folder: Path,
    *,
    run: str,
    executor: ExecutorConfig,
) -> Iterator[tuple[ShardInput, Receipt]]:
    if executor.backend == "ray":
        from polyseme.executors.cluster import run_on_ray

        return run_on_ray(job, inputs, folder, run, executor=executor)
    if executor.workers == 1 or len(inputs) == 1:
        return ((shard, commit_shard(job, shard, folder, run)) for shard in inputs)
    from polyseme.executors.local import run_locally

    return run_locally(job, inputs, folder, run, workers=executor.workers)


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


def _required(folder: Path, name: str) -> Receipt:
    receipt = read_receipt(folder, name)
    if receipt is None:
        raise ExecutorError(
            f"The receipt of {name} has vanished from {folder} during the run. Something else "
            "removes files there; stop it and run the same command again."
        )
    return receipt
