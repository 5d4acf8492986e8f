"""What every request passes before a route sees it, and what every answer carries."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from fastapi.responses import PlainTextResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SECURE_HEADERS", "CrossSiteGuard", "HostGuard", "SecureHeaders"]

_SAFE = ("GET", "HEAD", "OPTIONS")
_POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
SECURE_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
"""What every answer carries."""
_YEAR_S = 31_536_000


class SecureHeaders:
    """ASGI middleware: headers that tell browsers what a page may do. Pages are kept by nobody; static files for ever.

    Args:
        app: the application.
        secure: whether browsers come by HTTPS.
    """

    def __init__(self, app: ASGIApp, secure: bool) -> None:
        self._app = app
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURE_HEADERS.items():
                    headers.setdefault(name, value)
                if self._secure:
                    headers.setdefault("strict-transport-security", f"max-age={_YEAR_S}")
                named = scope["path"].startswith("/static/")  # the address changes with the files
                kept = f"public, max-age={_YEAR_S}, immutable" if named and message["status"] == 200 else "no-store"
                headers.setdefault("cache-control", kept)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class HostGuard:
    """ASGI middleware: only requests to a host that is ours. Another name that leads here would be another site's.

    Args:
        app: the application.
        names: of hosts, without ports.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str]) -> None:
        self._app = app
        self._names = {name.lower().strip("[]") for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] == "http" and _host_name(Headers(scope=scope).get("host", "")) not in self._names:
            text = "this console is not known by that name; start it with --public-url to add one\n"
            await PlainTextResponse(text, 421)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class CrossSiteGuard:
    """ASGI middleware: what changes something, and comes from a browser, must come from a page of ours.

    Programs send neither header, and no cookie; a request with our cookie must show where it comes from.
    """

    def __init__(self, app: ASGIApp, cookie: str) -> None:
        self._app = app
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] == "http" and scope["method"] not in _SAFE and not self._is_ours(Headers(scope=scope)):
            text = "this request comes from another site; nothing was done\n"
            await PlainTextResponse(text, 403)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_ours(self, headers: Headers) -> bool:
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site not in ("same-origin", "none"):
            return False
        if origin is not None:
            return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        return site is not None or self._cookie not in headers.get("cookie", "")


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
