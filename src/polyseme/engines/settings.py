"""Where the work over shards is done."""

import os
from typing import Literal

from pydantic import Field

from polyseme.config import Settings


class LocalConfig(Settings):
    """Worker processes on this machine."""

    kind: Literal["local"] = "local"
    workers: int = Field(default=1, ge=1, le=4_096)
    """How many processes work at once. With 1, or one shard, the work is done in this process."""


class RayConfig(Settings):
    """Tasks on a Ray cluster, or on a private one started here for the run."""

    kind: Literal["ray"] = "ray"
    workers: int = Field(default=1, ge=1, le=4_096)
    """How many tasks at once on a private cluster; a cluster with an address decides itself."""
    address: str | None = None
    """Where the cluster is, for example `10.0.0.1:6379`; None starts a private one on loopback."""


EngineConfig = LocalConfig | RayConfig


class ExecutorConfig(Settings):
    """What a command that works over many shards lets its user choose."""

    engine: Literal["local", "ray"] = "local"
    """Where the work is done: processes on this machine, or a Ray cluster (extra [ray])."""
    workers: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1, le=4_096)
    """How many shards are worked on at once; default: the number of processors."""
    ray_address: str | None = None
    """Address of a running Ray cluster; by default a private one is started for the run."""

    @property
    def chosen(self) -> EngineConfig:
        """The engine these settings ask for."""
        match self.engine:
            case "local":
                return LocalConfig(workers=self.workers)
            case "ray":
                return RayConfig(workers=self.workers, address=self.ray_address)
