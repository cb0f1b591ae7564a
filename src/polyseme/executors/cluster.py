"""Tasks on a Ray cluster. Ray retries what dies with a worker or a node; the commit makes a
second attempt harmless.

Work that needs GPUs is done by actors: Ray ends a task's process with the task if it had a GPU, and
the next one would import torch and load the model again. An actor keeps its process, its GPU and
the model that the work holds there, from shard to shard.

Ray is not a security boundary: whoever reaches a cluster with its token can run code on it.
What is started here listens on loopback only, demands a token, and has no dashboard.
"""

import contextlib
import logging
import os
import secrets
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from polyseme.errors import ExecutorError, extra_needed_for
from polyseme.executors.commit import (
    MAX_RETRIES,
    Receipt,
    ShardInput,
    ShardJob,
    Target,
    commit,
    portable,
)

# As many as a cluster that starts from nothing must see to grow, and few enough that 10^5 shards
# never sit in the scheduler at once.
_TASKS_IN_HAND = 1_000
# As many GPUs are used at once, and asked for from a cluster that can grow.
_ACTORS_IN_HAND = 256
# A task costs the driver some 10 ms of processor time. Where there are very many shards, several
# are one task; and still each CPU has many tasks, so that none is idle for long at the end.
_FEWEST_TASKS = 1_000
_TASKS_PER_CPU = 16
_MOST_IN_TASK = 64
_PATIENCE = 25.0  # seconds without news until it is said that nothing runs
# At "0" a node's only address is loopback. Named after the systems where that is the default.
_LOOPBACK_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"

# Ray's sockets lie there, and the name of a socket must not be longer than some 100 bytes.
_SHORT = None if os.name == "nt" else "/tmp"  # noqa: S108

_Arguments = tuple[Any, Target, str]  # of `_commit`, after the shards
_Committed = tuple[Sequence[ShardInput], list[Receipt]]
_Wait = Callable[[Mapping[Any, object]], list[Any]]  # for what is in hand


def run_on_ray(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    target: Target,
    run: str,
    *,
    address: str | None,
    workers: int,
    on_message: Callable[[str], None],
) -> Iterator[tuple[ShardInput, Receipt]]:
    """Yield each shard with its receipt as it is committed somewhere on the cluster.

    Without an address it is a private one, of so many workers.
    """
    with _connected(address, workers) as ray:
        enough = max(_FEWEST_TASKS, _TASKS_PER_CPU * int(ray.cluster_resources().get("CPU", 0)))
        size = min(_MOST_IN_TASK, 1 + len(inputs) // enough)
        waiting = deque(inputs[begin : begin + size] for begin in range(0, len(inputs), size))
        seen = target.resolve() if isinstance(target, Path) else target
        arguments = ray.put(job), seen, run

        def wait(in_hand: Mapping[Any, object]) -> list[Any]:
            return _next_done(ray, in_hand, job, on_message)

        if job.num_gpus:
            done = _by_actors(ray, job.num_gpus, waiting, arguments, wait)
        else:
            done = _by_tasks(ray, waiting, arguments, wait)
        for shards, receipts in done:
            yield from zip(shards, receipts, strict=True)


def _by_tasks(
    ray: Any, waiting: deque[Sequence[ShardInput]], arguments: _Arguments, wait: _Wait
) -> Iterator[_Committed]:
    """Some shards a task, in whatever process has a CPU free."""
    # Retries are for deaths of workers and nodes; an exception from the work itself is the
    # user's to see at once.
    options = {"max_retries": MAX_RETRIES - 1, "retry_exceptions": False, "num_cpus": 1}
    remote = ray.remote(**options)(_commit)
    in_hand: dict[Any, Sequence[ShardInput]] = {}
    while waiting or in_hand:
        while waiting and len(in_hand) < _TASKS_IN_HAND:
            shards = waiting.popleft()
            in_hand[remote.remote(shards, *arguments)] = shards
        for reference in wait(in_hand):
            shards = in_hand.pop(reference)
            yield shards, _result(ray, reference, shards)


class _Actor:
    """A process with GPUs of its own until it is ended."""

    def start(self) -> list[Receipt]:
        """Answered as soon as there is a GPU."""
        return []

    def commit(self, *arguments: Any) -> list[Receipt]:
        """Some shards."""
        return _commit(*arguments)


def _by_actors(
    ray: Any,
    num_gpus: int,
    waiting: deque[Sequence[ShardInput]],
    arguments: _Arguments,
    wait: _Wait,
) -> Iterator[_Committed]:
    """Some shards at a time for each actor that has its GPUs.

    An actor that dies with its worker or node is started again by Ray, and does what it had in
    hand. When nothing waits any more, actors that have nothing to do make place for such ones.
    """
    options = {"max_restarts": -1, "max_task_retries": MAX_RETRIES - 1}
    remote = ray.remote(**options, num_cpus=1, num_gpus=num_gpus)(_Actor)
    in_hand: dict[Any, tuple[Any, Sequence[ShardInput]]] = {}
    for _ in range(min(len(waiting), _ACTORS_IN_HAND)):
        actor = remote.remote()
        in_hand[actor.start.remote()] = actor, ()
    while in_hand:
        for reference in wait(in_hand):
            actor, shards = in_hand.pop(reference)
            receipts = _result(ray, reference, shards)
            if waiting:
                more = waiting.popleft()
                in_hand[actor.commit.remote(more, *arguments)] = actor, more
            else:
                ray.kill(actor)
            yield shards, receipts
        if not waiting:
            idle = [reference for reference, (_, shards) in in_hand.items() if not shards]
            for reference in idle:
                ray.kill(in_hand.pop(reference)[0])


def _next_done(
    ray: Any, in_hand: Mapping[Any, object], job: ShardJob, on_message: Callable[[str], None]
) -> list[Any]:
    """Wait for a task; where none runs at all, say so now and then."""
    while True:
        done, _ = ray.wait(list(in_hand), num_returns=len(in_hand), timeout=0, fetch_local=False)
        if not done:
            done, _ = ray.wait(list(in_hand), num_returns=1, timeout=_PATIENCE, fetch_local=False)
        if done:
            return list(done)
        there, free = ray.cluster_resources(), ray.available_resources()
        needed = "GPU" if job.num_gpus else "CPU"
        if there.get(needed, 0) <= free.get(needed, 0):
            gpus = f" and {there.get('GPU', 0):,.0f} GPUs" if job.num_gpus else ""
            what = "actors" if job.num_gpus else "tasks"
            on_message(
                f"Nothing runs yet: the Ray cluster has {there.get('CPU', 0):,.0f} CPUs{gpus}, and "
                f"{len(in_hand):,} {what} wait for one each. Waiting for nodes; Ctrl-C loses "
                "nothing that is finished."
            )


def _commit(shards: Sequence[ShardInput], job: ShardJob, target: Target, run: str) -> list[Receipt]:
    """`commit`, as a task on the cluster."""
    receipts = []
    for shard in shards:
        try:
            receipts.append(commit(job, shard, target, run))
        except Exception as error:  # noqa: BLE001  # not lost: it goes to the run that asked
            raise portable(error, shard) from None
    return receipts


def _result(ray: Any, reference: Any, shards: Sequence[ShardInput]) -> list[Receipt]:
    try:
        receipts: list[Receipt] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error  # the work's own error, as the local backend would raise it
    except ray.exceptions.RayError as error:
        raise ExecutorError(
            f"{_named(shards)} has ended its worker {MAX_RETRIES} times, or the Ray cluster lost "
            f"it for good: {error}. All other finished shards are kept; run the same command again "
            "when the cluster is healthy."
        ) from error
    return receipts


def _named(shards: Sequence[ShardInput]) -> str:
    if not shards:
        return "An actor, before it had any work,"
    first, last = shards[0].name, shards[-1].name
    return first if first == last else f"A shard of {first} to {last}"


@contextlib.contextmanager
def _connected(address: str | None, workers: int) -> Iterator[Any]:
    """Ray, for as long as it is needed; nothing of a private cluster is left behind."""
    # Closed to other users. Ray opens its own folder to all, so that must lie inside.
    with tempfile.TemporaryDirectory(
        prefix="polyseme-", dir=_SHORT, ignore_cleanup_errors=True
    ) as folder:
        ray = _connect(address, workers, f"{folder}/ray")
        try:
            yield ray
        finally:
            ray.shutdown()


def _connect(address: str | None, workers: int, folder: str) -> Any:
    """Ray, connected. A private cluster is closed to everyone without its token."""
    _set_switches(address)
    with extra_needed_for('backend = "ray"'):
        import ray
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        ray.init(
            address="local",
            num_cpus=workers,
            include_dashboard=False,
            _temp_dir=folder,
            **quiet,
        )
        _check_closed(ray)
        return ray
    try:
        _check_port(address)
        ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ray.exceptions.RayError) as error:
        raise ExecutorError(
            f"No Ray cluster answered at {address}: {error}. Check the address and "
            "that RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) holds the cluster's token."
        ) from error
    return ray


def _set_switches(address: str | None) -> None:
    """Ray reads them from the environment when imported, and so do the processes it starts."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # no phoning home
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # silences a warning we can't act on
    os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] = "."  # prints nothing of its own: not every death
    if address is not None:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        return
    if "ray" in sys.modules and os.environ.get(_LOOPBACK_ONLY) != "0":
        raise ExecutorError(
            "Ray was imported in this process before it was set to keep to loopback. "
            "Run this in a process of its own."
        )
    os.environ[_LOOPBACK_ONLY] = "0"
    os.environ["RAY_AUTH_MODE"] = "token"
    # Otherwise Ray makes one and leaves it in the home folder for all to read.
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _check_port(address: str) -> None:
    """Fail at once where nobody listens; Ray would go on trying for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _check_closed(ray: Any) -> None:
    """End a private cluster that others could reach, should a new Ray not know our switch."""
    addresses = [node["NodeManagerAddress"] for node in ray.nodes()]
    if not {*addresses} <= {"127.0.0.1", "::1"}:
        ray.shutdown()
        raise ExecutorError(
            f"Ray {ray.__version__} listens on {', '.join(addresses)}, not on loopback only. "
            "Start a cluster yourself and give its address, or use the local backend."
        )
