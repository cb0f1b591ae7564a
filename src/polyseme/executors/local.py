"""Worker processes on this machine. A worker that dies is replaced and its shard done again.

Not `concurrent.futures`: there one dead worker breaks the whole pool, and nobody can say
which shard it was working on, so a shard that always kills its worker would be retried
without end.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from polyseme.errors import ExecutorError
from polyseme.executors.commit import (
    MAX_RETRIES,
    Receipt,
    ShardInput,
    ShardJob,
    Target,
    commit,
    for_worker,
    portable,
)


class _Worker:
    """A process, the pipe to it, and the shard it has in hand."""

    def __init__(self, job: ShardJob, target: Target, run: str) -> None:
        # Spawned, not forked: threads of the parent (Arrow, progress) would be copied mid-step.
        context = multiprocessing.get_context("spawn")
        self.pipe, far_end = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(far_end, job, target, run), daemon=True
        )
        self.process.start()
        far_end.close()  # so that a dead worker closes the pipe
        self.shard: ShardInput | None = None

    def give(self, shard: ShardInput | None) -> None:
        """Hand over the next shard; None means there are no more."""
        self.shard = shard
        with contextlib.suppress(OSError):  # it has just died: reading from it will say so
            self.pipe.send(shard)


def run_locally(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    target: Target,
    run: str,
    on_progress: Callable[[ShardInput, int], None],
    *,
    workers: int,
) -> Iterator[tuple[ShardInput, Receipt]]:
    """Yield each shard with its receipt as it is committed."""
    waiting = deque(inputs)
    deaths: Counter[str] = Counter()
    jobs = [for_worker(job, number) for number in range(min(workers, len(inputs)))]
    crew = [_Worker(each, target, run) for each in jobs]
    try:
        for worker in crew:
            worker.give(waiting.popleft())
        while any(worker.shard for worker in crew):
            for worker in _next_news(crew):
                shard = worker.shard
                assert shard is not None
                try:
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    worker.process.join()
                    worker.pipe.close()
                    deaths[shard.name] += 1
                    _check_deaths(shard, deaths[shard.name], worker)
                    waiting.appendleft(shard)
                    place = crew.index(worker)
                    crew[place] = worker = _Worker(jobs[place], target, run)  # noqa: PLW2901
                else:
                    if isinstance(answer, int):
                        on_progress(shard, answer)
                        continue
                    if isinstance(answer, Exception):
                        raise answer
                    yield shard, answer
                worker.give(waiting.popleft() if waiting else None)
    finally:
        for worker in crew:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()


def _next_news(crew: list[_Worker]) -> list[_Worker]:
    """Wait until some busy worker has answered or died."""
    busy = {worker.pipe: worker for worker in crew if worker.shard}
    ready = multiprocessing.connection.wait(list(busy))
    return [busy[pipe] for pipe in ready]  # type: ignore[index]


def _check_deaths(shard: ShardInput, deaths: int, worker: _Worker) -> None:
    if deaths < MAX_RETRIES:
        return
    code = worker.process.exitcode or 0
    how = signal.strsignal(-code) if code < 0 else f"exit code {code}"
    raise ExecutorError(
        f"{shard.name} has ended its worker {deaths} times (last by: {how}). If that is 'Killed', "
        "the machine ran out of memory: use fewer workers. All other finished shards are kept."
    )


def _serve(pipe: Connection, job: ShardJob, target: Target, run: str) -> None:
    """The life of a worker process: shards in; how much is done, receipts or errors out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    try:
        while (shard := pipe.recv()) is not None:
            try:
                pipe.send(commit(job, shard, target, run, pipe.send))
            except Exception as error:  # noqa: BLE001  # carried to the parent, which raises it
                pipe.send(portable(error, shard))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent is gone; the shard in hand was committed or will be done again
