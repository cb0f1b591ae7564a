"""One function over many shards: a local loop or a Ray cluster, each shard exactly once.

    in   a `ShardJob`, a list of inputs, an output folder
    out  the files the function wrote for each input, and one `Receipt` per shard

`run_job` is all a caller needs. The engines differ only in where `commit_shard` is called.
"""

from polyseme.engines.commit import Receipt, ShardInput, ShardJob, commit_shard
from polyseme.engines.holding import hold_file, hold_folder
from polyseme.engines.run import run_job
from polyseme.engines.settings import EngineConfig, ExecutorConfig, LocalConfig, RayConfig
from polyseme.engines.watch import Report

__all__ = [
    "EngineConfig",
    "ExecutorConfig",
    "LocalConfig",
    "RayConfig",
    "Receipt",
    "Report",
    "ShardInput",
    "ShardJob",
    "commit_shard",
    "hold_file",
    "hold_folder",
    "run_job",
]
