"""One function over many shards: a local loop or a Ray cluster, each shard exactly once.

    in   a `ShardJob`, a list of inputs, an output folder
    out  the files the function wrote for each input, and what they sum up to

`run_job` is all a caller needs. The backends differ only in where `commit_shard` is called.
"""

from polyseme.executors.commit import Done, Receipt, Report, ShardInput, ShardJob, commit_shard
from polyseme.executors.run import ExecutorConfig, JobResult, ModelExecutorConfig, run_job

__all__ = [
    "Done",
    "ExecutorConfig",
    "JobResult",
    "ModelExecutorConfig",
    "Receipt",
    "Report",
    "ShardInput",
    "ShardJob",
    "commit_shard",
    "run_job",
]
