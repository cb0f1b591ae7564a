"""Where the work over shards is done."""

from typing import Literal

from pydantic import Field

from polyseme.config import Settings
from polyseme.devices import choose_device, devices_of, usable_cpus


class ExecutorConfig(Settings):
    """Where the work over many shards is done."""

    backend: Literal["local", "ray"] = "local"
    """Processes on this machine, or tasks on a Ray cluster (extra [cluster])."""
    workers: int = Field(default_factory=usable_cpus, ge=1, le=4_096)
    """How many shards are processed in parallel; default: the number of CPU cores that may be used.
    With 1, or one shard, everything runs in this process. A cluster with an address decides for
    itself."""
    ray_address: str | None = None
    """Address of a running Ray cluster, for example `10.0.0.1:6379`; by default a private one is
    started on loopback for the run."""


class ModelExecutorConfig(ExecutorConfig):
    """Where the work is done, if a model does it."""

    workers: int = Field(default_factory=usable_cpus, ge=1, le=4_096)
    """How many files are processed in parallel; default: the number of CPU cores that may be used,
    or of GPUs. With 1, or one file, everything runs in this process. A cluster with an address
    decides for itself."""
    device: str = Field("auto", pattern=r"auto|cpu|mps|cuda(:\d{1,3})?")
    """Where the model computes: auto, cpu, cuda, cuda:N or mps; auto takes the GPUs, if there are
    any, one worker each. With `--backend ray`, cuda is one GPU of the cluster for each worker."""

    same_bits: bool = False
    """Refuse workers whose versions, processor or kernel differ from this process's, and recompute
    files that were made by other ones: the same command gives the same bytes."""

    def chosen_device(self) -> str:
        """Where the model computes. Named GPUs of a cluster are its nodes': none is needed here."""
        if self.backend == "ray" and self.device == "cuda":
            return self.device
        return choose_device(self.device)

    def on(self, device: str) -> ExecutorConfig:
        """The same with the number of workers that is right for a device, unless one was given."""
        told = {name: getattr(self, name) for name in ExecutorConfig.model_fields}
        if device != "cpu" and "workers" not in self.model_fields_set:
            told["workers"] = max(1, len(devices_of(device)))
        return ExecutorConfig(**told)
