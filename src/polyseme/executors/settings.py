"""Where the work over shards is done."""

import os
from typing import Literal

from pydantic import Field

from polyseme.config import Settings


class ExecutorConfig(Settings):
    """Where the work over many shards is done."""

    backend: Literal["local", "ray"] = "local"
    """Processes on this machine, or tasks on a Ray cluster (extra [ray])."""
    workers: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1, le=4_096)
    """How many shards are processed in parallel; default: the number of CPU cores. With 1, or one
    shard, everything runs in this process. A cluster with an address decides for itself."""
    ray_address: str | None = None
    """Address of a running Ray cluster, for example `10.0.0.1:6379`; by default a private one is
    started on loopback for the run."""
