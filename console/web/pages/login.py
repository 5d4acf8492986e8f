"""Logging in and out, and the first account."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ...access.accounts import HashedPassword, add_account, any_accounts, hash_password, password_fits
from ...access.actor import Actor
from ...access.audit import audit, audit_repeated
from ...access.login_throttle import network_of
from ...database.database import Database
from ...database.turns import take_turn
from ...errors import ForbiddenError
from ...models import User
from ..cookies import forget_login, keep_login, login_cookie
from ..page import Page, PageMaker
from ..rendering import is_ours, redirect
from ..state import WebState, state_of
from ..who import Reading, Viewer, address_of

__all__ = ["router"]

router = APIRouter()
_NOBODY, _ANYBODY = "no such account", "anybody"
_TOO_MANY = 429
_comers = ThreadPoolExecutor(3, thread_name_prefix="login")
"""Strangers' tries wait in a line of their own, not in the threads that all routes share, and leave others a place to hash."""


def _ours(path: str) -> str:
    """A path of this console, or the home page: a link must not lead anywhere else after a login."""
    return path if is_ours(path) else "/"


@router.get("/login")
def login_page(page: Page, session: Reading, next: str = "/") -> Response:  # noqa: A002  # as the URL names it
    """The form, or a word about the first account while there is none."""
    return page("login.html", next=_ours(next), name="", problem=None, any_accounts=any_accounts(session))


@router.post("/login")
async def log_in(
    request: Request,
    page: Page,
    session: Reading,
    name: Annotated[str, Form(max_length=200)],
    password: Annotated[str, Form(max_length=1024)],
    next: Annotated[str, Form()] = "/",  # noqa: A002  # as the form names it
) -> Response:
    """Log somebody in, or show the form again."""
    trying = partial(_try, request, page, session, name.strip().lower(), password, _ours(next))
    return await asyncio.get_running_loop().run_in_executor(_comers, trying)


def _try(request: Request, page: PageMaker, session: Session, name: str, password: str, then: str) -> Response:
    state, address = state_of(request), address_of(request)
    shown = {"next": then, "name": name, "any_accounts": any_accounts(session)}
    if wait := state.login_throttle.take(name, address):
        session.commit()
        if state.login_throttle.worth_noting(address):
            _record_failure(state.database, None, address, "login.throttled", _ANYBODY, audit)
        answer = page("login.html", _TOO_MANY, problem=f"too many tries; wait {wait:.0f} seconds", **shown)
        answer.headers["retry-after"] = f"{wait:.0f}"
        return answer
    user = session.scalar(select(User).where(User.name == name))
    session.commit()
    if password_fits(user, password) and user is not None:
        state.login_throttle.succeeded(name, address)
        return _logged_in(request, user.id, then)
    _record_failure(state.database, user, address, "login.failed", _NOBODY, audit_repeated)
    return page("login.html", 401, problem="there is no account with this name and password", **shown)


@router.post("/logout")
def log_out(request: Request, actor: Viewer) -> Response:
    """End this login."""
    state = state_of(request)
    with state.database.writing() as session:
        if cookie := login_cookie(request):
            state.logins.end(session, cookie)
        audit(session, actor, "logout", "user", actor.name)
    response = redirect("/login", "You are logged out.")
    forget_login(request, response)
    return response


@router.get("/setup")
def setup_page(request: Request, page: Page, session: Reading, token: str = "") -> Response:
    """The form for the first account."""
    _check_link(state_of(request), any_accounts(session), token)
    return page("setup.html", token=token, name="", problem=None)


@router.post("/setup")
def set_up(
    request: Request,
    page: Page,
    session: Reading,
    name: Annotated[str, Form(max_length=200)],
    password: Annotated[str, Form(max_length=1024)],
    again: Annotated[str, Form(max_length=1024)],
    token: Annotated[str, Form()] = "",
) -> Response:
    """Make the first account, an admin, and log it in."""
    state = state_of(request)
    _check_link(state, any_accounts(session), token)
    session.commit()  # what waits to hash holds no connection
    try:
        if password != again:
            raise UsageError("the two passwords differ")
        user_id = _first_account(state, name, hash_password(password), token, address_of(request))
    except ForbiddenError:
        raise
    except UsageError as error:
        return page("setup.html", 422, token=token, name=name, problem=error.message)
    return _logged_in(request, user_id, "/")


def _first_account(state: WebState, name: str, password: HashedPassword, token: str, address: str) -> int:
    with state.database.writing() as session:
        take_turn(session)
        _check_link(state, any_accounts(session), token)
        user = add_account(session, name, password, "admin")
        audit(session, Actor(user.id, user.name, "admin", "browser", address), "user.add", "user", user.name, role="admin")
        return user.id


def _check_link(state: WebState, any_there: bool, token: str) -> None:
    if any_there:
        raise ForbiddenError("the first account has been made", hint="Log in with it.")
    if not state.first_account.allows(token):
        raise ForbiddenError("this link is not the one that this console printed", hint="It is in its terminal.")


def _logged_in(request: Request, user_id: int, then: str) -> RedirectResponse:
    state = state_of(request)
    with state.database.writing() as session:
        user = session.get_one(User, user_id)
        browser = request.headers.get("user-agent", "")
        token = state.logins.begin(session, user, address=address_of(request), browser=browser, replaces=login_cookie(request))
        state.logins.forget_old(session)
        actor = Actor(user.id, user.name, user.role, "browser", address_of(request))
        audit(session, actor, "login", "user", user.name)
    response = redirect(then)
    keep_login(request, response, token)
    return response


def _record_failure(
    database: Database, user: User | None, address: str, action: str, nobody: str, write: Callable[..., None]
) -> None:
    """Write down a failed login, by its network: whoever has one could fail from another address each time.

    Not the name that was typed where there is no such account: it may be a password.
    """
    name = user.name if user else nobody
    actor = Actor(user.id if user else 0, name, "viewer", "browser", network_of(address))
    with database.writing() as session:
        write(session, actor, action, "user", name)
