"""Pages on this machine for its own user: on 127.0.0.1, opened by an address with a code."""

import socket
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from html import escape
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from polyseme.errors import PolysemeError
from polyseme.explorer.app import make_app
from polyseme.explorer.settings import HOST, ServeConfig
from polyseme.explorer.workspace import Workspace

_LOOKS = 0.2  # seconds between two looks at whether anyone still reads


class _LastAsked:
    """Notes when a page was last asked for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.at = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note it, and hand it on."""
        self.at = time.monotonic()
        await self._app(scope, receive, send)


def serve(
    workspace: Workspace,
    config: ServeConfig,
    listening: socket.socket,
    *,
    language: str = "",
    on_ready: Callable[[str], None],
) -> None:
    """Answer until Ctrl-C, or until nobody has asked for long enough.

    `on_ready` is told an address, and each time that one was used, another.
    """
    port = listening.getsockname()[1]
    guard = make_app(workspace, port=port, language=language)
    app = _LastAsked(guard)
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", access_log=False, server_header=False, ws="none")
    )
    view = workspace.opening
    path = view.address("/word") + "&" if view.q else "/?"
    address = f"http://{HOST}:{port}{path}token="

    def tell() -> None:
        on_ready(address + guard.new_code(on_used=tell))

    tell()
    warming = threading.Thread(target=_warm_up, args=(workspace,))
    warming.start()
    if config.idle is not None:
        watch = threading.Thread(target=_end_when_idle, args=(server, app, 60 * config.idle))
        watch.daemon = True
        watch.start()
    with tempfile.TemporaryDirectory(prefix="polyseme-", ignore_cleanup_errors=True) as folder:
        if not config.no_browser:
            page = _redirect(Path(folder), address + guard.new_code())
            threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        with suppress(KeyboardInterrupt):  # the server has ended by itself, and then tells it again
            server.run(sockets=[listening])
    workspace.close()
    warming.join()  # or it would be torn from its work, and complain


def _redirect(folder: Path, address: str) -> Path:
    """A page that leads to an address. Every user of a machine sees with what a browser is
    started; what is in this folder, only its owner."""
    page = folder / "polyseme.html"
    page.touch(mode=0o600)
    page.write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(address)}">', "utf-8"
    )
    return page


def _warm_up(workspace: Workspace) -> None:
    """Do at once what the first page would wait for; what fails will be told by that page."""
    with suppress(PolysemeError):
        if workspace.opening.q:
            workspace.begin(workspace.opening)
        if not workspace.is_closed:
            workspace.describer()
        if not workspace.is_closed:
            workspace.sizes()


def _end_when_idle(server: uvicorn.Server, app: _LastAsked, seconds: float) -> None:
    while time.monotonic() - app.at < seconds or not server.started:
        time.sleep(_LOOKS)
    server.should_exit = True
