"""The queue in front of an engine: what waits when the model is free becomes one batch.

    in   requests, one by one, each with a deadline and a client who may leave
    out  their answers, or a `Refused` with an HTTP status

Nothing waits while the model is idle. What would wait too long is refused at once: an overloaded
server answers as many requests as it can and tells the others when to come back. An engine that
dies or hangs is started again; only the requests it had in hand fail.
"""

import asyncio
import contextlib
import json
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from polyseme.errors import PolysemeError
from polyseme.processes import python_process
from polyseme.serving import LimitsConfig
from polyseme.serving.engine import HEADER, pack

_log = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0  # seconds before an engine is started again
_NEWEST = 0.2  # weight of the last large batch in how long a character takes
_LARGE = 1_000  # characters; in small batches, which nobody waits for, each takes longer


class Refused(Exception):  # noqa: N818  # not a fault: the answer to a request
    """A request that is not answered, with its HTTP status."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.retry_after = None if retry_after is None else max(1, math.ceil(retry_after))


class EngineDiedError(Exception):
    """The process ended, or does not answer."""


@dataclass(frozen=True)
class Answer:
    """What an engine found for a request."""

    told: dict[str, Any]
    numbers: memoryview


class Metrics:
    """What Prometheus is told; each server has its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kept: Any = {"registry": self.registry}
        self.requests = Counter(
            "polyseme_requests", "Requests answered.", ["route", "status"], **kept
        )
        self.seconds = Histogram(
            "polyseme_request_seconds", "Time from a request's head to its answer.", ["route"],
            buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30), **kept,
        )  # fmt: skip
        self.accepted = Gauge(
            "polyseme_accepted_requests", "Requests that are not answered yet.", **kept
        )
        self.waiting = Gauge("polyseme_waiting_requests", "Requests in the queue.", **kept)
        self.batch = Histogram(
            "polyseme_batch_requests", "Requests read together.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256), **kept,
        )  # fmt: skip
        self.words = Counter("polyseme_words", "Words read.", **kept)
        self.busy = Counter("polyseme_engine_busy_seconds", "Time engines were at work.", **kept)
        self.restarts = Counter("polyseme_engine_restarts", "Engines started again.", **kept)


class EngineProcess:
    """A process that has loaded the models, spoken to in frames."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Of the process that is running."""
        return None if self._process is None else self._process.pid

    async def start(self) -> dict[str, Any]:
        """Load the models; what they are."""
        self._process = await asyncio.create_subprocess_exec(
            *python_process("polyseme.serving.engine", "main"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the server, which lets it finish
        )
        told, _ = await self._exchange(self._settings)
        if "failed" in told:
            raise PolysemeError(told["failed"])
        return dict(told)

    async def ended(self) -> None:
        """Wait until the process ends."""
        if self._process is not None:
            await self._process.wait()

    async def run(self, requests: Sequence[dict[str, Any]]) -> list[Answer]:
        """The answers to a batch."""
        told, payload = await self._exchange(requests)
        numbers = memoryview(payload)
        return [Answer(each, numbers[slice(*each.get("bytes", (0, 0)))]) for each in told]

    async def _exchange(self, told: Any) -> tuple[Any, bytes]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(pack(told))
            await process.stdin.drain()
            text, payload = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
            return json.loads(await process.stdout.readexactly(text)), (
                await process.stdout.readexactly(payload)
            )
        except (asyncio.IncompleteReadError, BrokenPipeError, ConnectionError) as error:
            raise EngineDiedError from error

    async def stop(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@dataclass(eq=False)
class _Job:
    request: dict[str, Any]
    cost: int
    """In characters (bytes of its body): what is known of a request before its words are."""
    answer: "asyncio.Future[Answer]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Dispatcher:
    """Hands batches to one engine, and starts it again when it died."""

    def __init__(self, engine: EngineProcess, limits: LimitsConfig, metrics: Metrics) -> None:
        self._engine, self._limits, self._metrics = engine, limits, metrics
        self._queue: OrderedDict[int, _Job] = OrderedDict()
        self._wake = asyncio.Event()
        self._waiting = self._in_hand = 0  # characters
        self._seconds_per_character = 0.0
        self.about: dict[str, Any] | None = None
        """What the engine has loaded; None before."""
        self.is_ready = False
        """Whether the engine is loaded, checked and alive."""
        self.failure = ""
        """Why the models could not be loaded at all."""

    @property
    def pid(self) -> int | None:
        """Of the engine."""
        return self._engine.pid

    @property
    def num_waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @property
    def expected_wait(self) -> float:
        """Seconds until what has come so far will be answered, by how long it took lately."""
        return (self._waiting + self._in_hand) * self._seconds_per_character

    async def submit(self, request: dict[str, Any], cost: int) -> Answer:
        """The answer to a request. Cancel it when its client has left: its place is free then."""
        if self.about is None:
            raise Refused(503, "not_ready", "The model is being loaded.", retry_after=5)
        if len(self._queue) >= self._limits.max_queue or self.expected_wait > self._limits.max_wait:
            raise Refused(
                429, "overloaded", "Too many requests are waiting.", retry_after=self.expected_wait
            )
        job = _Job(request, cost)
        self._queue[id(job)] = job
        self._waiting += cost
        self._wake.set()
        try:
            async with asyncio.timeout(self._limits.timeout):
                answer = await job.answer
        except TimeoutError as error:
            raise Refused(504, "timeout", "The answer took too long.", retry_after=5) from error
        finally:
            if self._queue.pop(id(job), None):
                self._waiting -= cost
        if "refused" in answer.told:
            is_missing = answer.told["is_missing"]
            status, code = (404, "not_found") if is_missing else (400, "invalid_input")
            raise Refused(status, code, answer.told["refused"])
        self._metrics.words.inc(answer.told.get("num_words", 0))
        return answer

    async def run(self) -> None:
        """Serve until cancelled."""
        pause = _FIRST_PAUSE
        try:
            while True:
                try:
                    self.about = await self._engine.start()
                    self._seconds_per_character = self.about["seconds_per_character"]
                    self.is_ready, pause = True, _FIRST_PAUSE
                    await self._serve()
                except EngineDiedError:
                    if self.about is None:  # what it will do the next time as well
                        self.failure = "An engine ended while it loaded the models; see above."
                    _log.warning("An engine ended unexpectedly, and is started again.")
                except PolysemeError as error:  # a model that cannot be loaded
                    self.failure = str(error)
                    _log.error("%s", error)  # it says itself what to do
                self.is_ready = False
                self._metrics.restarts.inc()
                await self._engine.stop()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            self.is_ready = False
            await self._engine.stop()

    async def _serve(self) -> None:
        """Batch after batch, until the engine dies; what waits is left to the next one."""
        died = asyncio.ensure_future(self._engine.ended())
        died.add_done_callback(lambda _: self._wake.set())
        try:
            while True:
                await self._wake.wait()
                if died.done():
                    raise EngineDiedError
                await self._serve_batch()
        finally:
            died.cancel()

    async def _serve_batch(self) -> None:
        jobs = self._take()
        if not jobs:
            return
        began = time.monotonic()
        self._metrics.batch.observe(len(jobs))
        try:
            # Whoever waits longer has given up; so has an engine that says nothing for so long.
            async with asyncio.timeout(2 * self._limits.timeout):
                answers = await self._engine.run([job.request for job in jobs])
        except (EngineDiedError, TimeoutError) as error:
            for job in jobs:
                if not job.answer.done():
                    failed = "The engine was restarted."
                    job.answer.set_exception(Refused(503, "restarted", failed, retry_after=1))
            raise EngineDiedError from error
        finally:
            seconds, cost = time.monotonic() - began, self._in_hand
            self._in_hand = 0
            self._metrics.busy.inc(seconds)
        if cost >= _LARGE:
            newest, before = seconds / cost, self._seconds_per_character or seconds / cost
            self._seconds_per_character = (1 - _NEWEST) * before + _NEWEST * newest
        for job, answer in zip(jobs, answers, strict=True):
            if not job.answer.done():
                job.answer.set_result(answer)

    def _take(self) -> list[_Job]:
        """The oldest that fit into one batch; at least one."""
        jobs: list[_Job] = []
        while self._queue:
            number, job = next(iter(self._queue.items()))
            if jobs and self._in_hand + job.cost > self._limits.max_batch_characters:
                break
            del self._queue[number]
            self._waiting -= job.cost
            if job.answer.done():  # whoever asked has left
                continue
            self._in_hand += job.cost
            jobs.append(job)
        if not self._queue:
            self._wake.clear()
        return jobs
