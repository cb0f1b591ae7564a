"""The explorer as a web application: which address is answered by which page.

in   a workspace, a port
out  an ASGI application for this machine's own browser
"""

import logging
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
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from polyseme.errors import PolysemeError
from polyseme.explorer import PagesConfig, pages
from polyseme.explorer.access import AccessGuard
from polyseme.explorer.context import AppContext, PageRequest, explain, load_templates
from polyseme.explorer.language import PageError, log_details
from polyseme.explorer.view import View
from polyseme.explorer.workspace import Workspace
from polyseme.meanings.concordance.conditions import ConditionError
from polyseme.processes import HOST

_log = logging.getLogger(__name__)
_STATIC = Path(__file__).parent / "static"
_MAP = Path(__file__).parents[1] / "meanings" / "use_map"
_FILES = {
    "style.css": _STATIC / "style.css",
    "explorer.js": _STATIC / "explorer.js",
    "htmx.min.js": _STATIC / "vendor" / "htmx.min.js",
    "map.js": _MAP / "map.js",
    "palette.css": _MAP / "palette.css",
    "icon.svg": _STATIC / "icon.svg",
}
"""All files that are served, by name: no address reaches any other."""


def make_app(workspace: Workspace, *, port: int, language: str = "") -> AccessGuard:
    """The application. It answers only a browser that was let in, on this port."""
    app = Starlette(
        routes=[*pages.ROUTES, Route("/static/{name}", static)],
        exception_handlers={
            PolysemeError: explain_error,
            HTTPException: explain_http,
            Exception: explain_fault,
        },
    )
    app.state.app = AppContext(workspace, language)
    load_templates()  # now, so that nobody waits for it
    # Around all else: what tells of a fault of ours is for the user alone, too.
    return AccessGuard(app, port=port, language=language)


def static(request: Request) -> Response:
    """A file of ours."""
    path = _FILES.get(request.path_params["name"])
    if path is None:
        raise HTTPException(404)
    return FileResponse(path)


def explain_error(request: Request, error: Exception) -> Response:
    """An error that its reader can act on; what only the terminal's reader can is told there."""
    assert isinstance(error, PolysemeError)
    log_details(error)
    asked = _asked(request)
    # A part is put into the page only if the answer is a good one.
    return asked.render(
        "problem.html" if asked.is_part else "error.html",
        status=200 if asked.is_part else 400,
        told=explain(asked.say, error),
        marked=error.marked if isinstance(error, ConditionError) else None,
        near=getattr(error.__cause__, "near", ()),
        is_stale=isinstance(error, PageError) and error.key == "stale_edit",
    )


def _asked(request: Request) -> PageRequest:
    app = AppContext.of(request)
    try:
        return PageRequest(app, request, getattr(request.state, "view", None) or app.view(request))
    except PolysemeError:
        return _plain(request)


def explain_fault(request: Request, error: Exception) -> Response:
    """A fault of ours: in few words to the reader, wholly to the log."""
    _log.error("%s failed", request.url.path, exc_info=error)
    return _short_page(request, 500, "bug", name=type(error).__name__)


def explain_http(request: Request, error: Exception) -> Response:
    """A page that is not there."""
    assert isinstance(error, HTTPException)
    if request.url.path == "/favicon.ico":
        return RedirectResponse("/static/icon.svg")
    return _short_page(request, error.status_code, "no_page")


def _plain(request: Request) -> PageRequest:
    """Of an address that makes no sense, its language."""
    view = View(lang=request.query_params.get("lang", "")[:2])
    return PageRequest(AppContext.of(request), request, view)


def _short_page(request: Request, status: int, key: str, **values: object) -> Response:
    asked = _plain(request)
    told = asked.say(key, **values)
    return asked.render("error.html", status=status, told=told, near=(), is_stale=False)


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
    config: PagesConfig,
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
            workspace.encoder()
        if not workspace.is_closed:
            workspace.sizes()


def _end_when_idle(server: uvicorn.Server, app: _LastAsked, seconds: float) -> None:
    while time.monotonic() - app.at < seconds or not server.started:
        time.sleep(_LOOKS)
    server.should_exit = True
