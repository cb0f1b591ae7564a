"""Tasks on a Ray cluster. Ray retries what dies with a worker or a node; the commit makes a
second attempt harmless.

Ray is not a security boundary: whoever reaches a cluster with its token can run code on it.
What is started here listens on loopback only, demands a token, and has no dashboard.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from polyseme.engines.commit import Receipt, ShardInput, ShardJob, commit_shard
from polyseme.engines.run import RayConfig
from polyseme.errors import EngineError, MissingExtraError

# More tasks in hand than the cluster has places, so that none of its workers waits for us, and
# few enough that 10^5 shards never sit in the scheduler at once.
_TASKS_PER_PLACE = 2


def run_on_ray(
    job: ShardJob, inputs: Sequence[ShardInput], folder: Path, run: str, *, engine: RayConfig
) -> Iterator[tuple[ShardInput, Receipt]]:
    """Yield each shard with its receipt as it is committed somewhere on the cluster."""
    ray = _connect(engine)
    try:
        # Retries without end are for deaths of workers and nodes; an exception from the work
        # itself is the user's to see at once.
        commit = ray.remote(max_retries=-1, retry_exceptions=False, num_cpus=1)(commit_shard)
        shared_job = ray.put(job)
        waiting = iter(inputs)
        in_hand: dict[Any, ShardInput] = {}
        while True:
            places = int(ray.cluster_resources().get("CPU", 1)) * _TASKS_PER_PLACE
            while len(in_hand) < max(places, 1) and (shard := next(waiting, None)) is not None:
                in_hand[commit.remote(shared_job, shard, folder.resolve(), run)] = shard
            if not in_hand:
                return
            done, _ = ray.wait(list(in_hand), num_returns=1, timeout=5.0)
            for reference in done:
                yield in_hand.pop(reference), _result(ray, reference)
    finally:
        ray.shutdown()


def _result(ray: Any, reference: Any) -> Receipt:
    try:
        receipt: Receipt = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error  # the work's own error, as the local engine would raise it
    except ray.exceptions.RayError as error:
        raise EngineError(
            f"The Ray cluster lost a task for good: {error}. What is finished is kept; "
            "run the same command again when the cluster is well."
        ) from error
    return receipt


def _connect(engine: RayConfig) -> Any:
    """Ray, connected. A private cluster is closed to everyone without its token."""
    # Ray reads its switches from the environment, also in the processes it starts, so they
    # must stand there before it is imported.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # no phoning home
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # silences a warning we can't act on
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", extra="ray", purpose='engine = "ray"') from error
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if engine.address is None:
        ray.init(
            address="local",
            num_cpus=engine.workers,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            **quiet,
        )
        return ray
    try:
        ray.init(address=engine.address, **quiet)
    except (ConnectionError, RuntimeError) as error:
        raise EngineError(
            f"No Ray cluster answered at {engine.address}: {error}. Check the address and that "
            "RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) holds the cluster's token."
        ) from error
    return ray
