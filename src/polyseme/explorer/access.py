"""Who may ask: this machine's user, in a browser that was given the address with its token.

    in   every request, before any page sees it
    out  a refusal, or the page's answer with headers that keep other sites out of it

Any site that is open in the same browser can send requests to this machine. It does not know the
token; its requests carry another origin or none of our cookie; and a name of its own that is made
to point here (DNS rebinding) is not one of our host names.
"""

import secrets
from collections.abc import Mapping
from http.cookies import CookieError, Morsel, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1 << 20
"""Bytes of a form: tens of thousands of lines can be ticked in it."""
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


def new_token() -> str:
    """A word that nobody guesses."""
    return secrets.token_urlsafe(24)


class AccessGuard:
    """Asks every request for its token, its host and its origin."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app, self._token, self._port = app, token, port
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        # Cookies do not tell ports apart, so that the name must.
        self._cookie = f"polyseme-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        if reason := self._refusal(scope):
            await PlainTextResponse(reason, 403, headers=_HEADERS)(scope, receive, send)
            return
        sets_cookie = self._is_token(self._token_in_address(scope))

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if sets_cookie:
                    headers.append(
                        "Set-Cookie",
                        f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict",
                    )
            await send(message)

        await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> str:
        """Why a request is refused; empty if it is not."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self._hosts:
            return f"This is not an address of the explorer. Open http://127.0.0.1:{self._port}/."
        method = scope["method"]
        if method not in ("GET", "HEAD", "POST"):
            return "Only pages are served here."
        if not _is_own_origin(headers, host, is_change=method == "POST"):
            return "Another site asked for this page, which is for you alone."
        given = self._token_in_cookie(headers)
        if not self._is_token(given) and (
            method == "POST" or not self._is_token(self._token_in_address(scope))
        ):
            return (
                "The address lacks its token. Open the address that `polyseme` printed when it "
                "started; it ends in ?token=..."
            )
        return ""

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())

    def _token_in_cookie(self, headers: Headers) -> str:
        try:
            cookies: Mapping[str, Morsel[str]] = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return ""
        return cookies[self._cookie].value if self._cookie in cookies else ""

    @staticmethod
    def _token_in_address(scope: Scope) -> str:
        text: str = scope["query_string"].decode("ascii", "replace")
        query = parse_qs(text, max_num_fields=10_000)
        return query.get("token", [""])[0]


def _is_own_origin(headers: Headers, host: str, *, is_change: bool) -> bool:
    """Whether one of our own pages asks, or the user by typing the address."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None or is_change:
        return origin == f"http://{host}" and site in (None, "same-origin")
    if site in (None, "same-origin", "none"):
        return True
    # A link on another page may open one of ours; it cannot read it, nor put it into itself.
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") in (
        "document",
        None,
    )
