"""Run a job over all its inputs on the chosen backend, and tidy up what earlier runs left.

Where the work is done is an `ExecutorConfig`. Files are removed in the output folder only where
they were made: those called as shards are, directly in a folder of the job.

On this machine shards are done by worker processes. One that dies is replaced and its shard done
again. Not by `concurrent.futures`: there one dead worker breaks the whole pool, and nobody can say
which shard it was working on, so a shard that always kills its worker would be retried without end.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from polyseme.config import Settings
from polyseme.devices import choose_device, devices_of, usable_cpus
from polyseme.errors import ExecutorError
from polyseme.executors.commit import (
    MAX_RETRIES,
    RECEIPTS,
    Receipt,
    ShardInput,
    ShardJob,
    Target,
    commit,
    finished,
    for_worker,
    portable,
)
from polyseme.storage.files import WORK, clear_work, disk_faults_explained, hold_folder, refuse_link
from polyseme.storage.folders import FileList


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


OnProgress = Callable[[int], None]
OnMessage = Callable[[str], None]


def run_job(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    target: Target,
    *,
    executor: ExecutorConfig,
    on_progress: OnProgress = lambda _: None,
    on_message: OnMessage = lambda _: None,
) -> "JobResult":
    """Commit every shard, and tell what came out of all of them.

    `on_progress` is called now and then with how much of all sizes is done. Only one run at a time
    may write to a folder; in a store several may work, and each shard is whoever's is first.
    """
    assert len({shard.name for shard in inputs}) == len(inputs), "shard names must differ"
    progress = Progress(on_progress)
    if not isinstance(target, Path):
        return _run(job, inputs, target, "", progress, executor, on_message)
    target.mkdir(parents=True, exist_ok=True)
    with disk_faults_explained(target), hold_folder(target), _work_folder(target) as run:
        for top in (RECEIPTS, *job.folders):
            refuse_link(target / top)
        result = _run(job, inputs, target, run, progress, executor, on_message)
        _remove_strays(job, target, inputs, result.files)
        return result


class JobResult:
    """What came out of all shards together: memory holds some 300 bytes of each."""

    def __init__(self) -> None:
        self.files = FileList()
        """All files that were written."""
        self.counts: dict[str, Any] = {}
        """The sum of what each shard counts, name by name."""
        self.counts_now: dict[str, Any] = {}
        """The same of the shards that were done in this run."""
        self.num_found = 0
        """Shards that an earlier run had done."""

    def add(self, receipt: Receipt) -> None:
        """One shard is done."""
        self.files.add(receipt.files)
        _add(self.counts, receipt.counts)
        if receipt.was_there:
            self.num_found += 1
        else:
            _add(self.counts_now, receipt.counts)


def _add(total: dict[str, Any], counts: Mapping[str, Any]) -> None:
    for name, value in counts.items():
        if isinstance(value, dict):
            _add(total.setdefault(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value


class Progress:
    """Adds up what is done of all shards, finished or in hand."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._finished = 0
        self._in_hand: Counter[str] = Counter()
        self._on_progress = on_progress

    def add(self, shard: ShardInput, amount: int) -> None:
        """So much more of a shard is done; it may be a second attempt."""
        self._in_hand[shard.name] = min(self._in_hand[shard.name] + amount, shard.size)
        self._on_progress(self._finished + self._in_hand.total())

    def finish(self, shard: ShardInput) -> None:
        """All of a shard is done."""
        self._finished += shard.size
        self._in_hand.pop(shard.name, None)
        self._on_progress(self._finished + self._in_hand.total())


def _run(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    target: Target,
    run: str,
    progress: Progress,
    executor: ExecutorConfig,
    on_message: OnMessage,
) -> JobResult:
    """Take what is done, and have the rest done."""
    result, missing = JobResult(), []
    for shard, receipt in finished(job, inputs, target):
        if receipt is None:
            missing.append(shard)
        else:
            result.add(receipt)
            progress.finish(shard)
    for shard, receipt in _receipts(job, missing, target, run, progress, executor, on_message):
        result.add(receipt)
        progress.finish(shard)
    return result


def _receipts(
    job: ShardJob,
    inputs: Sequence[ShardInput],
    target: Target,
    run: str,
    progress: Progress,
    executor: ExecutorConfig,
    on_message: OnMessage,
) -> Iterator[tuple[ShardInput, Receipt]]:
    if not inputs:
        return
    if executor.backend == "ray":
        from polyseme.executors.cluster import run_on_ray

        address, workers = executor.ray_address, executor.workers
        yield from run_on_ray(
            job, inputs, target, run, address=address, workers=workers, on_message=on_message
        )
    elif executor.workers == 1 or len(inputs) == 1:
        for shard in inputs:
            yield shard, commit(job, shard, target, run, partial(progress.add, shard))
    else:
        yield from run_locally(job, inputs, target, run, progress.add, workers=executor.workers)


@contextlib.contextmanager
def _work_folder(folder: Path) -> Iterator[str]:
    """Give this run a work folder of its own, and take away those of all runs before."""
    work = folder / WORK
    run = uuid.uuid4().hex
    try:
        clear_work(work)
        (work / run).mkdir(parents=True)
        yield run
    finally:
        clear_work(work)


def _remove_strays(
    job: ShardJob, folder: Path, inputs: Sequence[ShardInput], files: FileList
) -> None:
    """Remove shards of an earlier plan, receipt first, and files that a shard has no more."""
    for top in (RECEIPTS, *job.folders):
        if top == RECEIPTS:
            kept = {f"{RECEIPTS}/{shard.name}.json" for shard in inputs}
        else:
            kept = set(files.under(top))
        with contextlib.suppress(FileNotFoundError), os.scandir(folder / top) as entries:
            strays = [
                entry.name
                for entry in entries
                # A link goes, but not what it leads to; a folder is not ours.
                if entry.name.startswith("part-")
                and f"{top}/{entry.name}" not in kept
                and not entry.is_dir(follow_symlinks=False)
            ]
            for name in strays:
                (folder / top / name).unlink(missing_ok=True)


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
            # Wait until some busy worker has answered or died.
            busy = {worker.pipe: worker for worker in crew if worker.shard}
            for pipe in multiprocessing.connection.wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
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
                    crew[place] = worker = _Worker(jobs[place], target, run)
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
