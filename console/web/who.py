"""Who asks: from the cookie of a login, or from a token."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Annotated

from fastapi import Depends, Request, params
from sqlalchemy.orm import Session

from ..access.actor import Actor, Scope
from ..access.tokens import find_token
from ..errors import ForbiddenError, LoginNeededError
from .cookies import login_cookie
from .state import state_of

__all__ = [
    "Admin",
    "Builder",
    "BuilderOrDeployer",
    "Deployer",
    "FindActor",
    "OwnAccount",
    "Reading",
    "Viewer",
    "address_of",
    "find_actor",
    "form_checked",
    "may_go_on",
    "needs",
    "reading",
]

_FORM_TOKEN, _FORM_HEADER = "form_token", "x-form-token"
_SAFE = ("GET", "HEAD", "OPTIONS")
_UNKNOWN = "unknown"


def address_of(request: Request) -> str:
    """Where a request comes from: an IP address, or ``unknown``. What a client made a proxy say is not repeated."""
    try:
        return str(ip_address(request.client.host)) if request.client else _UNKNOWN
    except ValueError:
        return _UNKNOWN


def reading(request: Request) -> Iterator[Session]:
    """A reading transaction for one request."""
    with state_of(request).database.reading() as session:
        yield session


Reading = Annotated[Session, Depends(reading, scope="function")]
"""Closed before the answer is sent: a stream that goes on for minutes holds no connection."""


def find_actor(request: Request, session: Reading) -> Actor | None:
    """Who asks, or nobody. Error pages know it too, once it has been asked."""
    actor = _find_actor(request, session)
    # The transaction ends here: its connection must be free for what the route writes, and whoever waits for one holds none.
    session.commit()
    request.state.actor = actor
    return actor


def _find_actor(request: Request, session: Session) -> Actor | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if token and scheme.lower() == "bearer":
        return find_token(state_of(request).database, session, token.strip(), address_of(request))
    cookie = login_cookie(request)
    found = state_of(request).logins.find(session, cookie) if cookie else None
    if found is None:
        return None
    login, user = found
    session.commit()
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


def may_go_on(request: Request) -> bool:
    """Whether who has asked could ask now: an answer that takes minutes ends when the login does."""
    with state_of(request).database.reading() as session:
        return _find_actor(request, session) is not None


FindActor = Annotated[Actor | None, Depends(find_actor)]


async def form_checked(request: Request, actor: FindActor) -> Actor | None:
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
    if given is None or not hmac.compare_digest(given.encode(), actor.form_token.encode()):
        raise ForbiddenError("this form is too old, or not from here; nothing was done", hint="Reload the page and try again.")
    return actor


def needs(*scopes: Scope, in_person: bool = False) -> params.Depends:
    """A dependency: somebody who may do this.

    Args:
        scopes: what is done; of several, one is enough to come in, and what is found there decides which.
        in_person: whether it must be done by somebody who has logged in: a token that is lost must not be able to make
            others, or to take the account over.

    Raises:
        LoginNeededError: nobody is logged in.
        ForbiddenError: whoever it is may not.
    """

    def check(actor: Annotated[Actor | None, Depends(form_checked)]) -> Actor:
        if actor is None:
            raise LoginNeededError
        if not any(actor.may(scope) for scope in scopes):
            actor.require(scopes[0])
        if in_person and actor.login is None:
            raise ForbiddenError("a token cannot do this", hint="Log in with a browser.")
        return actor

    # For the test that visits every route as everybody.
    check.scopes = scopes  # type: ignore[attr-defined]
    check.in_person = in_person  # type: ignore[attr-defined]
    dependency: params.Depends = Depends(check)
    return dependency


Viewer = Annotated[Actor, needs("read")]
Builder = Annotated[Actor, needs("build")]
Deployer = Annotated[Actor, needs("deploy")]
BuilderOrDeployer = Annotated[Actor, needs("build", "deploy")]
Admin = Annotated[Actor, needs("admin")]
OwnAccount = Annotated[Actor, needs("read", in_person=True)]
