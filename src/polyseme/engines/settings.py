"""Which hands do the work."""

from typing import Literal

from pydantic import Field

from polyseme.config import Settings


class LocalConfig(Settings):
    """Worker processes on this machine."""

    kind: Literal["local"] = "local"
    workers: int = Field(default=1, ge=1)
    """How many processes work at once. With 1, or one shard, the work is done in this process."""


class RayConfig(Settings):
    """Tasks on a Ray cluster, or on a private one started here for the run."""

    kind: Literal["ray"] = "ray"
    workers: int = Field(default=1, ge=1)
    """How many tasks at once on a private cluster; a cluster with an address decides itself."""
    address: str | None = None
    """Where the cluster is, for example `10.0.0.1:6379`; None starts a private one on loopback."""


EngineConfig = LocalConfig | RayConfig
