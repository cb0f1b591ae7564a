"""Who may ask: this machine's user, in a browser that was given an address with a code.

    in   every request, before any page sees it
    out  a refusal, or the page's answer with headers that keep other sites out of it

Any site that is open in the same browser can send requests to this machine. It has no cookie of
ours; its requests carry another origin; and a name of its own that is made to point here (DNS
rebinding) is not one of our host names. A code works once: a browser's history keeps the address
that it was part of, whatever we answer.
"""

import secrets
from collections.abc import Callable, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyseme.explorer.language import Language, choose_language

MAX_BODY = 1 << 20
"""Bytes of a form: tens of thousands of lines can be ticked in it."""
MAX_FIELDS = 1_000
"""Names and values in an address."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Scripts and styles of ours alone, none of them inline; nothing from elsewhere."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": then a browser would not say either that a form is one of ours.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_CODE = "token="


class AccessGuard:
    """Asks every request for its cookie, its host and its origin."""

    def __init__(self, app: ASGIApp, *, port: int, language: str = "") -> None:
        self._app, self._language = app, language
        names = ("127.0.0.1", "localhost")
        # Browsers leave out the port that is usual.
        self._hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
        # Cookies do not tell ports apart, so that the name must.
        self._cookie, self._secret = f"polyseme-{port}", secrets.token_urlsafe(24)
        self._codes: dict[str, Callable[[], None]] = {}

    def new_code(self, on_used: Callable[[], None] = lambda: None) -> str:
        """A word that nobody guesses, which lets one browser in: `?token=` and it."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = on_used
        return code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, let a browser in, or hand on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._own_answer(scope) or self._app
        await app(scope, receive, send_guarded)

    def _own_answer(self, scope: Scope) -> Response | None:
        """A refusal, or the way to the address without its code; None: the page may answer."""
        headers = Headers(scope=scope)
        fields = scope["query_string"].decode("latin-1").split("&")
        codes = [field.removeprefix(_CODE) for field in fields if field.startswith(_CODE)]
        has_cookie = self._has_cookie(headers)
        say = Language(choose_language("", headers.get("accept-language", ""), self._language))
        if refusal := self._refusal(scope["method"], headers, codes, has_cookie=has_cookie):
            return PlainTextResponse(say(refusal), 403)
        if len(fields) > MAX_FIELDS:
            return PlainTextResponse(say("too_many_fields", most=MAX_FIELDS), 400)
        if not codes or scope["method"] == "POST":
            return None
        rest = "&".join(field for field in fields if not field.startswith(_CODE))
        path = "/" + scope["raw_path"].decode("latin-1").lstrip("/")  # "//name" is another host
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        if not has_cookie:
            # Not "Strict": the browser comes from a file or a terminal, and would not send it.
            answer.set_cookie(self._cookie, self._secret, httponly=True, samesite="lax")
        return answer

    def _refusal(
        self, method: str, headers: Headers, codes: Sequence[str], *, has_cookie: bool
    ) -> str:
        """Why a request is refused, as the pages call it; empty if it is not."""
        if headers.get("host", "") not in self._hosts:
            return "refused_host"
        if method not in ("GET", "HEAD", "POST"):
            return "refused_method"
        if not _is_own_origin(headers, is_change=method == "POST"):
            return "refused_origin"
        # Used up also by who has the cookie already: the history would keep one that still works.
        used = [self._use(code) for code in codes] if method == "GET" else []
        return "" if has_cookie or any(used) else "refused_code"

    def _use(self, given: str) -> bool:
        """Whether a code is one of ours; it is none from then on."""
        for code in self._codes:
            if secrets.compare_digest(given.encode(), code.encode()):
                self._codes.pop(code)()
                return True
        return False

    def _has_cookie(self, headers: Headers) -> bool:
        """Other programs on this machine set cookies, too, in any form and under any name."""
        pairs = (
            pair.partition("=") for text in headers.getlist("cookie") for pair in text.split(";")
        )
        return any(
            secrets.compare_digest(value.strip().encode(), self._secret.encode())
            for name, _, value in pairs
            if name.strip() == self._cookie
        )


def _is_own_origin(headers: Headers, *, is_change: bool) -> bool:
    """Whether one of our own pages asks, or the user by typing the address."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None or is_change:
        return origin == f"http://{headers['host']}" and site in (None, "same-origin")
    if site in (None, "same-origin", "none"):
        return True
    # A link on another page may open one of ours; it cannot read it, nor put it into itself.
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") in (
        "document",
        None,
    )
