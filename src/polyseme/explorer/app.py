"""The explorer as a web application: which address is answered by which page.

in   a workspace, a port
out  an ASGI application for this machine's own browser
"""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from polyseme.errors import PolysemeError
from polyseme.explorer import pages
from polyseme.explorer.access import AccessGuard
from polyseme.explorer.comparing import compare
from polyseme.explorer.desk import Desk, explain, read_form
from polyseme.explorer.exports import export
from polyseme.explorer.judging import judge
from polyseme.explorer.language import PageError, log_details
from polyseme.explorer.scoring import score, substitutes
from polyseme.explorer.view import FormValues, View
from polyseme.explorer.workspace import Workspace

_log = logging.getLogger(__name__)
_STATIC = Path(__file__).parent / "static"
_FILES = {
    "style.css": _STATIC / "style.css",
    "explorer.js": _STATIC / "explorer.js",
    "htmx.min.js": _STATIC / "vendor" / "htmx.min.js",
    "map.js": Path(__file__).parents[1] / "meanings" / "use_map" / "map.js",
    "icon.svg": _STATIC / "icon.svg",
}
"""All files that are served, by name: no address reaches any other."""

Form = Callable[[Request, FormValues], Response]


def make_app(workspace: Workspace, *, port: int, language: str = "") -> AccessGuard:
    """The application. It answers only a browser that was let in, on this port."""
    app = Starlette(
        routes=[
            Route("/", pages.home),
            Route("/word", pages.word),
            Route("/progress", pages.progress),
            Route("/stop", pages.stop, methods=["POST"]),
            Route("/context", pages.context),
            Route("/line", pages.line),
            Route("/frequency", pages.frequency),
            Route("/choices", pages.choices),
            Route("/map", pages.map_places),
            Route("/judge", _posted(judge), methods=["POST"]),
            Route("/compare", compare),
            Route("/score", score),
            Route("/substitutes", substitutes),
            Route("/export/{name}", export),
            Route("/static/{name}", static),
        ],
        exception_handlers={
            PolysemeError: explain_error,
            HTTPException: explain_http,
            Exception: explain_fault,
        },
    )
    app.state.desk = Desk(workspace, language)
    # Around all else: what tells of a fault of ours is for the user alone, too.
    return AccessGuard(app, port=port, language=language)


def _posted(page: Form) -> Callable[[Request], Awaitable[Response]]:
    """A page for a form: its values are read, then it works in a thread."""

    async def answer(request: Request) -> Response:
        form = await read_form(request)
        return await run_in_threadpool(page, request, form)

    return answer


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
    desk = Desk.of(request)
    try:
        view = getattr(request.state, "view", None) or desk.view(request)
    except PolysemeError:
        view = _plain_view(request)
    is_part = "hx-request" in request.headers
    # A part is put into the page only if the answer is a good one.
    return desk.render(
        request,
        "problem.html" if is_part else "error.html",
        view,
        status=200 if is_part else 400,
        told=explain(desk.say(request, view), error),
        near=getattr(error.__cause__, "near", ()),
        is_stale=isinstance(error, PageError) and error.key == "stale_edit",
    )


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


def _plain_view(request: Request) -> View:
    """Of an address that makes no sense, its language."""
    return View(lang=request.query_params.get("lang", "")[:2])


def _short_page(request: Request, status: int, key: str, **values: object) -> Response:
    desk, view = Desk.of(request), _plain_view(request)
    told = desk.say(request, view)(key, **values)
    return desk.render(
        request, "error.html", view, status=status, told=told, near=(), is_stale=False
    )
