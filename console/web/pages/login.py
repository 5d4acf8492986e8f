"""Logging in and out, and the first account."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import select

from roundhouse.errors import UsageError

from ...access.accounts import add_account, any_accounts, password_fits
from ...access.actor import Actor
from ...access.audit import audit
from ...database.database import Database
from ...errors import ForbiddenError
from ...models import User
from ..page import Page
from ..rendering import redirect
from ..state import WebState, state_of
from ..who import Reading, Viewer, address_of, cookie_name

__all__ = ["router"]

router = APIRouter()
_LOGIN_AGE_S = 14 * 24 * 3600


def _ours(path: str) -> str:
    """A path of this console, or the home page: a link must not lead anywhere else after a login."""
    plain = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if plain else "/"


@router.get("/login")
def login_page(page: Page, session: Reading, next: str = "/") -> Response:  # noqa: A002  # as the URL names it
    """The form, or a word about the first account while there is none."""
    return page("login.html", next=_ours(next), name="", problem=None, any_accounts=any_accounts(session))


@router.post("/login")
def log_in(
    request: Request,
    page: Page,
    session: Reading,
    name: Annotated[str, Form(max_length=200)],
    password: Annotated[str, Form(max_length=1024)],
    next: Annotated[str, Form()] = "/",  # noqa: A002  # as the form names it
) -> Response:
    """Log somebody in, or show the form again."""
    state, name = state_of(request), name.strip().lower()
    keys = (f"account {name}", f"address {address_of(request)}")
    problem, status = "", 429
    if wait := state.login_throttle.wait_s(*keys):
        problem = f"too many tries; wait {wait:.0f} seconds"
    else:
        user = session.scalar(select(User).where(User.name == name))
        if password_fits(user, password) and user is not None:
            state.login_throttle.succeeded(keys[0])
            return _logged_in(request, user.id, _ours(next))
        state.login_throttle.failed(*keys)
        problem, status = "there is no account with this name and password", 401
    return page("login.html", status, next=_ours(next), name=name, problem=problem, any_accounts=any_accounts(session))


@router.post("/logout")
def log_out(request: Request, actor: Viewer) -> Response:
    """End this login."""
    state = state_of(request)
    with state.database.writing() as session:
        if cookie := request.cookies.get(cookie_name(request)):
            state.logins.end(session, cookie)
        audit(session, actor, "logout", "user", actor.name)
    response = redirect("/login")
    response.delete_cookie(cookie_name(request))
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
    name: Annotated[str, Form(max_length=200)],
    password: Annotated[str, Form(max_length=1024)],
    again: Annotated[str, Form(max_length=1024)],
    token: Annotated[str, Form()] = "",
) -> Response:
    """Make the first account, an admin, and log it in."""
    state = state_of(request)
    try:
        if password != again:
            raise UsageError("the two passwords differ")
        user_id = _first_account(state.database, state, name, password, token, address_of(request))
    except ForbiddenError:
        raise
    except UsageError as error:
        return page("setup.html", 422, token=token, name=name, problem=error.message)
    return _logged_in(request, user_id, "/")


def _first_account(database: Database, state: WebState, name: str, password: str, token: str, address: str) -> int:
    with database.writing() as session:
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
    state, name = state_of(request), cookie_name(request)
    with state.database.writing() as session:
        user = session.get_one(User, user_id)
        browser = request.headers.get("user-agent", "")
        token = state.logins.begin(
            session, user, address=address_of(request), browser=browser, replaces=request.cookies.get(name)
        )
        state.logins.forget_old(session)
        actor = Actor(user.id, user.name, user.role, "browser", address_of(request))
        audit(session, actor, "login", "user", user.name)
    response = redirect(then)
    secure = state.settings.secure
    response.set_cookie(name, token, max_age=_LOGIN_AGE_S, httponly=True, samesite="lax", secure=secure, path="/")
    return response
