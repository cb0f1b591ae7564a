"""A run whose files, if told so, appear bit by bit under their final names: what we must not do."""

import shutil
import time
from functools import partial
from pathlib import Path

from executors.jobs import capitals_slowly, make_inputs

from polyseme.executors import ExecutorConfig, ShardJob, run_job
from polyseme.storage.files import publish


def copy_in_place(scratch: Path, final: Path) -> None:
    """What a naive program does, slowed down so that it can be caught at it."""
    final.parent.mkdir(parents=True, exist_ok=True)
    with scratch.open("rb") as source, final.open("wb", buffering=0) as target:
        while part := source.read(10):
            target.write(part)
            time.sleep(0.01)


def copy_slowly(inputs: Path, out: Path, manner: str) -> None:
    """A run of many little shards by two workers."""
    job = ShardJob(
        partial(capitals_slowly, 0.05),
        "settings",
        publish=copy_in_place if manner == "careless" else publish,
    )
    run_job(job, make_inputs(inputs, 40), out, executor=ExecutorConfig(workers=2))
    shutil.rmtree(inputs)
