"""A server that listens, drains on SIGTERM, and ends slow connections.

in   settings of what is served, a socket
out  answers, until a signal
"""

import asyncio
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from polyseme.errors import ModelError, PolysemeError
from polyseme.serving import LimitsConfig
from polyseme.serving.app import Serving, make_app
from polyseme.serving.dispatch import Dispatcher, EngineProcess, Metrics

_TICK = 0.05
_SLOW = 10.0  # seconds in which the head of a request must come
_TOLD = 0.2  # seconds that a load balancer has, at least, to see that requests go elsewhere


class _Protocol(HttpToolsProtocol):
    """A connection, which ends if the head of its first request does not come in time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(_SLOW, transport.close)

    def on_headers_complete(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    """Takes no new requests after the first signal, and ends once those it has are answered."""

    def __init__(self, config: uvicorn.Config, serving: Serving, grace: float) -> None:
        super().__init__(config)
        self._serving, self._grace = serving, grace
        self.failure: PolysemeError | None = None

    def fail(self, message: str) -> None:
        """End with an error."""
        self.failure = ModelError(message)
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second ends."""
        if self._serving.is_draining:
            super().handle_exit(sig, frame)
            return
        self._serving.is_draining = True
        asyncio.get_running_loop().create_task(self._drain())  # ends the loop

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (waited := loop.time() - began) < self._grace:
            if waited >= _TOLD and not self._serving.in_flight:
                break
            await asyncio.sleep(_TICK)
        self.should_exit = True


def make_serving(
    name: str,
    engines: dict[tuple[str, ...], dict[str, Any]],
    limits: LimitsConfig,
    keys: tuple[str, ...],
) -> Serving:
    """What the routes share, with a queue in front of each engine; none is started yet."""
    metrics = Metrics()
    dispatchers: dict[str, Dispatcher] = {}
    for kinds, settings in engines.items():
        dispatcher = Dispatcher(EngineProcess(settings), limits, metrics)
        dispatchers.update(dict.fromkeys(kinds, dispatcher))
    return Serving(name, dispatchers, limits, metrics, keys)


def serve(
    name: str,
    engines: dict[tuple[str, ...], dict[str, Any]],
    limits: LimitsConfig,
    listening: socket.socket,
    *,
    keys: tuple[str, ...] = (),
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer until a signal. `engines`: the settings of each, by the kinds of its requests."""

    async def main() -> None:
        serving = make_serving(name, engines, limits, keys)
        config = uvicorn.Config(
            make_app(serving),
            http=_Protocol,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=5,
        )
        server = _Server(config, serving, limits.timeout)
        telling = asyncio.ensure_future(_tell_when_ready(serving, server, on_ready))
        try:
            await server.serve(sockets=[listening])
        finally:
            telling.cancel()
        if server.failure:
            raise server.failure

    asyncio.run(main())


async def _tell_when_ready(serving: Serving, server: _Server, on_ready: Callable[[], None]) -> None:
    """Once the models are loaded; a model that cannot be loaded at first ends the server."""
    while not serving.is_ready:
        await asyncio.sleep(_TICK)
        failed = next((each.failure for each in serving.engines if each.failure), "")
        if failed:
            server.fail(failed)
            return
    on_ready()
