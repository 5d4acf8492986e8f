"""Who asks: from the cookie of a login, or from a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request, params
from sqlalchemy.orm import Session

from ..access.actor import Actor, Scope
from ..access.tokens import find_token
from ..errors import ForbiddenError
from .problems import LoginNeededError
from .state import state_of

__all__ = [
    "Admin",
    "Builder",
    "Deployer",
    "Reading",
    "Viewer",
    "address_of",
    "cookie_name",
    "find_actor",
    "form_checked",
    "needs",
    "reading",
]

_COOKIE = "roundhouse_login"
_FORM_TOKEN, _FORM_HEADER = "form_token", "x-form-token"
_SAFE = ("GET", "HEAD", "OPTIONS")
_UNKNOWN = "unknown"


def cookie_name(request: Request) -> str:
    """The cookie's name. By HTTPS it has the prefix that lets no other host of the domain set it."""
    return f"__Host-{_COOKIE}" if state_of(request).settings.secure else _COOKIE


def address_of(request: Request) -> str:
    """Where a request comes from."""
    return request.client.host if request.client else _UNKNOWN


def reading(request: Request) -> Iterator[Session]:
    """A reading transaction for one request."""
    with state_of(request).database.reading() as session:
        yield session


Reading = Annotated[Session, Depends(reading, scope="function")]
"""It ends with the route, before the answer is sent: a stream that goes on for minutes holds no connection."""


def find_actor(request: Request, session: Reading) -> Actor | None:
    """Who asks, or nobody."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if token and scheme.lower() == "bearer":
        return find_token(state_of(request).database, session, token.strip(), address_of(request))
    cookie = request.cookies.get(cookie_name(request))
    found = state_of(request).logins.find(session, cookie) if cookie else None
    if found is None:
        return None
    login, user = found
    state_of(request).logins.saw(state_of(request).database, login)
    return Actor(
        user_id=user.id,
        name=user.name,
        role=user.role,
        by="browser",
        address=address_of(request),
        form_token=login.form_secret,
        login=login.token_hash,
    )


async def form_checked(request: Request, actor: Annotated[Actor | None, Depends(find_actor)]) -> Actor | None:
    """Who asks; what changes something and comes with a cookie must come from a form, or a script, of ours.

    Raises:
        ForbiddenError: it does not carry this login's form token.
    """
    if actor is None or actor.form_token is None or request.method in _SAFE:
        return actor
    given = request.headers.get(_FORM_HEADER)
    if given is None and "form" in request.headers.get("content-type", ""):
        value = (await request.form()).get(_FORM_TOKEN)
        given = value if isinstance(value, str) else None
    if given is None or not given.isascii() or given != actor.form_token:
        raise ForbiddenError("this form is too old, or not from here; nothing was done", hint="Reload the page and try again.")
    return actor


def needs(scope: Scope) -> params.Depends:
    """A dependency: somebody who may do this.

    Raises:
        LoginNeededError: nobody is logged in.
        ForbiddenError: whoever it is may not.
    """

    def check(actor: Annotated[Actor | None, Depends(form_checked)]) -> Actor:
        if actor is None:
            raise LoginNeededError
        actor.require(scope)
        return actor

    check.scope = scope  # type: ignore[attr-defined]  # for the test that visits every route as everybody
    dependency: params.Depends = Depends(check)
    return dependency


Viewer = Annotated[Actor, needs("read")]
Builder = Annotated[Actor, needs("build")]
Deployer = Annotated[Actor, needs("deploy")]
Admin = Annotated[Actor, needs("admin")]
