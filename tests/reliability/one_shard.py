"""One shard through `run_job`, to be traced."""

from dataclasses import replace
from pathlib import Path

from executors.jobs import capitals_job, make_inputs

from polyseme.executors import ExecutorConfig, run_job
from reliability.slow_copies import copy_in_place


def commit_one_shard(inputs: Path, out: Path, manner: str = "careful") -> None:
    """Two files and a receipt."""
    shards = make_inputs(inputs, 1)
    shards[0].path.write_text("an odd text, long enough to be written in two steps")
    job = capitals_job()
    if manner == "careless":
        job = replace(job, publish=copy_in_place)
    run_job(job, shards, out, executor=ExecutorConfig(workers=1))
