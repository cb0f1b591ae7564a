"""Work that a model does on the parts of a corpus: what bulk embedding and the index share.

A part's files depend on the part, the model and the settings; their last bits on the environment,
too (versions, processor, kernel). It is recorded for each part. With `same_bits` it belongs to the
key of a part, and a worker with another one is refused.
"""

import hashlib
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from polyseme.devices import devices_of
from polyseme.embedding.corpus_parts import CorpusPart
from polyseme.embedding.loading import (
    Name,
    absolute,
    environment_for,
    fingerprint_of,
    load_embedder,
)
from polyseme.embedding.settings import Pooling, Precision, VectorsConfig
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.encoders.environment import Environment, differences
from polyseme.errors import ExecutorError
from polyseme.executors import Done, Report, ShardJob
from polyseme.storage.files import canonical_json

FORMAT = 1
"""Raise it when an embedder gives other vectors for the same model and words: what was computed
before is then computed again. A test compares vectors with recorded ones."""

PartFunction = Callable[["ModelWork", CorpusPart, Path, Report], dict[str, Any]]
"""Writes the files of a part and returns its counts."""


@dataclass(frozen=True)
class ModelWork:
    """A model and how it computes; it travels to the workers, each of which loads it once."""

    model: str
    """Its name, from wherever it is read."""
    model_hash: str
    config: VectorsConfig
    device: str
    required: Environment | None
    """The environment a worker must have; None if any will do."""

    @classmethod
    def start(
        cls, model: Name, config: VectorsConfig, device: str, *, same_bits: bool = False
    ) -> "ModelWork":
        """As the process that starts a run sees it."""
        name = absolute(model)
        work = cls(name, fingerprint_of(name, config.pooling), config, device, None)
        return replace(work, required=work.environment) if same_bits else work

    @property
    def environment(self) -> Environment:
        """What decides last bits here, besides model and settings."""
        config = self.config
        return environment_for(
            self.model,
            device=self.device,
            precision=config.resolved_precision,
            threads=config.threads,
        )

    def key(self, *made_from: Any) -> str:
        """Hash of all that decides the files of a part, `made_from` among it."""
        settings = self.config.model_dump(mode="json")
        parts = [FORMAT, self.model_hash, settings, self.required, *made_from]
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()

    def embedder(self) -> WordEmbedder:
        """The model, held from part to part."""
        config = self.config
        return _held_embedder(
            self.model,
            self.model_hash,
            device=self.device,
            precision=config.resolved_precision,
            threads=config.threads,
            pooling=config.pooling,
        )

    def check_environment(self) -> None:
        """Refuse to work where last bits would be others, if they matter."""
        if self.required and (changed := differences(self.required, self.environment)):
            raise ExecutorError(
                f"A worker on {platform.node()} would give vectors with other last bits than the "
                f"process that started the run: {changed}. Leave out --same-bits, or use nodes "
                "with equal processors and versions; build the kernel on all (python -m "
                "polyseme.encoders.kernels.build), with one compiler, or on none."
            )

    def job(self, function: PartFunction, key: str, folder: str) -> ShardJob:
        """To run a function over parts; its files lie in this folder of the output."""
        devices = devices_of(self.device)
        each = [partial(_run, function, replace(self, device=device)) for device in devices]
        return ShardJob(
            work=partial(_run, function, self),
            fingerprint=key,
            folders=(folder,),
            per_worker=tuple(each),
            num_gpus=int(self.device.startswith("cuda")),
        )


def _run(
    function: PartFunction, work: ModelWork, part: CorpusPart, folder: Path, report: Report
) -> Done:
    work.check_environment()
    counts = function(work, part, folder, report)
    return {**counts, "environments": {canonical_json(work.environment): 1}}, part.digest()


@lru_cache(maxsize=1)
def _held_embedder(
    model: str,
    model_hash: str,
    *,
    device: str,
    precision: Precision,
    threads: int,
    pooling: Pooling,
) -> WordEmbedder:
    found = load_embedder(
        model, device=device, precision=precision, threads=threads, pooling=pooling
    )
    if found.fingerprint != model_hash:
        raise ExecutorError(
            f"{model} is another model on {platform.node()} than where the run was started, or was "
            "changed since. Give all nodes the same one."
        )
    return found


def environments_of(counts: Mapping[str, Any]) -> list[Environment]:
    """Where parts were computed, each environment once, from the sum of their counts."""
    return [json.loads(environment) for environment in sorted(counts["environments"])]
