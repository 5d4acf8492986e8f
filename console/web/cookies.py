"""The cookie of a login."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from .state import state_of

__all__ = ["LOGIN_COOKIES", "forget_login", "keep_login", "login_cookie"]

_PLAIN = "roundhouse_login"
_PREFIXED = f"__Host-{_PLAIN}"
LOGIN_COOKIES = (_PLAIN, _PREFIXED)
"""Every name it may have."""
_AGE_S = 14 * 24 * 3600


def login_cookie(request: Request) -> str | None:
    """What the browser sent."""
    return request.cookies.get(_name(request)) or None


def keep_login(request: Request, response: Response, token: str) -> None:
    """Have the browser keep a login: for this site only, and for no script."""
    by_https = state_of(request).settings.secure
    response.set_cookie(_name(request), token, max_age=_AGE_S, httponly=True, samesite="lax", secure=by_https, path="/")


def forget_login(request: Request, response: Response) -> None:
    """Have the browser forget it. A cookie with the prefix is only replaced by one that has what the prefix asks for."""
    by_https = state_of(request).settings.secure
    response.delete_cookie(_name(request), httponly=True, samesite="lax", secure=by_https, path="/")


def _name(request: Request) -> str:
    """By HTTPS it has the prefix that lets no other host of the domain set it."""
    return _PREFIXED if state_of(request).settings.secure else _PLAIN
