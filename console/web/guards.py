"""What every request passes before a route sees it, and what every answer carries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from fastapi.responses import PlainTextResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["PROBES", "CrossSiteGuard", "HostGuard", "SecureHeaders", "secure"]

PROBES = ("/healthz", "/livez", "/readyz")
"""Asked by address, under whatever name; they tell nothing else."""
_SAFE = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_HTTPS = "https"
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
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_YEAR_S = 31_536_000


class SecureHeaders:
    """ASGI middleware: puts :func:`secure` on every answer that passes it.

    Args:
        app: the application.
        by_https: whether browsers come by HTTPS.
    """

    def __init__(self, app: ASGIApp, by_https: bool) -> None:
        self._app = app
        self._by_https = by_https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                secure(MutableHeaders(scope=message), scope, message["status"], self._by_https)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def secure(headers: MutableHeaders, scope: Scope, status: int, by_https: bool) -> None:
    """Complete an answer's headers. Pages are kept by nobody; static files, whose address changes with them, for ever."""
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    named = scope["path"].startswith("/static/") and status == 200  # the address changes with the files
    headers.setdefault("cache-control", f"public, max-age={_YEAR_S}, immutable" if named else "no-store")
    if by_https:
        headers.setdefault("strict-transport-security", f"max-age={_YEAR_S}")
        cookies = headers.getlist("set-cookie")
        if cookies:
            del headers["set-cookie"]
            for cookie in cookies:
                headers.append("set-cookie", cookie if "; secure" in cookie.lower() else f"{cookie}; Secure")


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
        if scope["type"] == "http" and scope["path"] not in PROBES and not self._is_ours(Headers(scope=scope)):
            text = "this console is not known by that name; start it with --public-url to add one\n"
            await PlainTextResponse(text, 421)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_ours(self, headers: Headers) -> bool:
        given = headers.getlist("host")
        found = _HOST.fullmatch(given[0].lower()) if len(given) == 1 else None
        return found is not None and found[1].strip("[]") in self._names


class CrossSiteGuard:
    """ASGI middleware: what changes something, and comes from a browser, must come from a page of ours.

    Programs send neither header, and no cookie; a request with our cookie must show where it comes from.

    Args:
        app: the application.
        cookies: names under which logins may be kept.
        public_url: how browsers reach it through a proxy, where there is one.
    """

    def __init__(self, app: ASGIApp, cookies: Sequence[str], public_url: str | None) -> None:
        self._app = app
        self._cookies = set(cookies)
        self._public = urlsplit(public_url) if public_url else None

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
            return self._is_our_origin(origin.lower(), headers.get("host", "").lower())
        return site is not None or not self._cookies & _cookie_names(headers)

    def _is_our_origin(self, origin: str, host: str) -> bool:
        scheme, separator, place = origin.partition("://")
        if self._public is not None:
            public = self._public.netloc.lower()
            if place == public:  # the proxy may have put another host in; who is here by HTTPS does not come from HTTP
                return scheme == self._public.scheme
            if host == public:
                return False
        return bool(separator) and scheme in ("http", _HTTPS) and place == host


def _cookie_names(headers: Headers) -> set[str]:
    pairs = ";".join(headers.getlist("cookie")).split(";")
    return {pair.partition("=")[0].strip() for pair in pairs}
