"""Pages on this machine for its own user: on 127.0.0.1, opened by an address with a token."""

import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from polyseme.errors import ConfigError, PolysemeError
from polyseme.explorer.access import new_token
from polyseme.explorer.app import make_app
from polyseme.explorer.settings import ServeConfig
from polyseme.explorer.workspace import Workspace

HOST = "127.0.0.1"
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
    *,
    language: str = "",
    on_ready: Callable[[str], None],
) -> None:
    """Answer until Ctrl-C, or until nobody has asked for long enough."""
    listening = _listen(config.port)
    port = listening.getsockname()[1]
    token = new_token()
    app = _LastAsked(make_app(workspace, token=token, port=port, language=language))
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", access_log=False, server_header=False, ws="none")
    )
    view = workspace.opening
    path = view.address("/word") + "&" if view.q else "/?"
    address = f"http://{HOST}:{port}{path}token={token}"
    on_ready(address)
    warming = threading.Thread(target=_warm_up, args=(workspace,))
    warming.start()
    if config.idle is not None:
        watch = threading.Thread(target=_end_when_idle, args=(server, app, 60 * config.idle))
        watch.daemon = True
        watch.start()
    if not config.no_browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    with suppress(KeyboardInterrupt):  # the server has ended by itself, and then tells it again
        server.run(sockets=[listening])
    workspace.close()
    warming.join()  # or it would be torn from its work, and complain


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(128)  # whoever is told the address may ask at once, and waits a moment
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"Cannot listen on port {port} of {HOST}: {error.strerror}. Choose another with "
            "--port, or leave it out to use a free one."
        ) from error
    return listening


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
