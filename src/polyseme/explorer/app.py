"""The explorer as a web application: which address is answered by which page.

in   a workspace, a token, a port
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
from starlette.types import ASGIApp

from polyseme.errors import PolysemeError
from polyseme.explorer import pages
from polyseme.explorer.access import AccessGuard
from polyseme.explorer.comparing import compare
from polyseme.explorer.desk import Desk, read_form
from polyseme.explorer.exports import export
from polyseme.explorer.judging import judge
from polyseme.explorer.scoring import score, substitutes
from polyseme.explorer.view import FormValues, View
from polyseme.explorer.workspace import Workspace
from polyseme.meanings.concordance.conditions import ConditionError

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


def make_app(workspace: Workspace, *, token: str, port: int, language: str = "") -> ASGIApp:
    """The application. It answers only whoever knows the token, on this port."""
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
            PolysemeError: explain,
            HTTPException: explain_http,
            Exception: explain_fault,
        },
    )
    app.state.desk = Desk(workspace, language)
    # Around all else: what tells of a fault of ours is for the user alone, too.
    return AccessGuard(app, token=token, port=port)


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


def explain(request: Request, error: Exception) -> Response:
    """An error that its reader can act on."""
    desk = Desk.of(request)
    try:
        view = getattr(request.state, "view", None) or desk.view(request)
    except PolysemeError:
        view = View()
    is_part = "hx-request" in request.headers
    # A part is put into the page only if the answer is a good one.
    return desk.render(
        request,
        "problem.html" if is_part else "error.html",
        view,
        status=200 if is_part else 400,
        lines=list(error.args[:1] if isinstance(error, ConditionError) else map(str, error.args)),
    )


def explain_fault(request: Request, error: Exception) -> Response:
    """A fault of ours: in few words to the reader, wholly to the log."""
    _log.error("%s failed", request.url.path, exc_info=error)
    told = f"This is a bug in Polyseme ({type(error).__name__}: {error})."
    return Desk.of(request).render(request, "error.html", View(), status=500, lines=[told])


def explain_http(request: Request, error: Exception) -> Response:
    """A page that is not there."""
    assert isinstance(error, HTTPException)
    if request.url.path == "/favicon.ico":
        return RedirectResponse("/static/icon.svg")
    return Desk.of(request).render(
        request, "error.html", View(), status=error.status_code, lines=[error.detail]
    )
