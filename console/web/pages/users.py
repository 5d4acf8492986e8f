"""Accounts, for admins."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from ...access.accounts import hash_password
from ...accounts.actions import add_user, change_role, end_logins, reset_password, revoke_token_of, set_enabled
from ...accounts.queries import find_token, find_user, list_users, logins_of, tokens_of
from ...accounts.records import UserFilter
from ...errors import ConflictError, FieldError
from ...models import Role
from ...paging import PageOf
from ..access_lists import RowId, UsersWanted
from ..list_url import ListUrl
from ..page import ListPage, Page, PageMaker
from ..rendering import redirect
from ..state import state_of
from ..who import Admin, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/users")
_NOTHING: dict[str, str] = {}

_Name = Annotated[str, Form(max_length=200)]
_Password = Annotated[str, Form(max_length=1024)]


@router.get("", dependencies=[needs("admin")])
def users(page: Page, session: Reading, part: ListPage, wanted: UsersWanted) -> Response:
    """Every account, with filters, and a form for another."""
    return _list(page, session, part, wanted)


@router.post("")
def add(
    request: Request,
    page: Page,
    session: Reading,
    actor: Admin,
    name: _Name,
    password: _Password,
    role: Annotated[Role, Form()],
) -> Response:
    """Make an account, or show the form again."""
    try:
        hashed = hash_password(password)
        with state_of(request).database.writing() as writing:
            user = add_user(writing, actor, name, hashed, role)
    except FieldError as error:
        typed = {"name": name, "role": role}
        return _list(page, session, PageOf(), UserFilter(), 422, typed, {error.field: error.message})
    return redirect(_path(user.name), f"{user.name} can log in now, as {role}.")


@router.get("/{name}", dependencies=[needs("admin")])
def user(page: Page, session: Reading, name: str) -> Response:
    """One account: what it may do, where it is logged in, its tokens."""
    return _one(page, session, name)


@router.post("/{name}/role")
def set_role(request: Request, actor: Admin, name: str, role: Annotated[Role, Form()]) -> Response:
    """Give it another role."""
    try:
        with state_of(request).database.writing() as session:
            change_role(session, actor, name, role)
    except ConflictError as error:
        return _refused(name, error)
    own = name == actor.name and role != "admin"  # who now sees no accounts any more
    return redirect("/" if own else _path(name), f"You are {role} now." if own else f"{name} is {role} now.")


@router.post("/{name}/disable")
def disable(request: Request, actor: Admin, name: str) -> Response:
    """Have it used no more."""
    try:
        with state_of(request).database.writing() as session:
            set_enabled(session, actor, name, enabled=False)
    except ConflictError as error:
        return _refused(name, error)
    return redirect(_path(name), f"{name} can no longer log in, and its tokens do not work.")


@router.post("/{name}/enable")
def enable(request: Request, actor: Admin, name: str) -> Response:
    """Let it be used again."""
    with state_of(request).database.writing() as session:
        set_enabled(session, actor, name, enabled=True)
    return redirect(_path(name), f"{name} can log in again.")


@router.post("/{name}/password")
def set_password(request: Request, page: Page, session: Reading, actor: Admin, name: str, password: _Password) -> Response:
    """Give it another password, or show the form again."""
    try:
        hashed = hash_password(password)
        with state_of(request).database.writing() as writing:
            reset_password(writing, actor, name, hashed)
    except FieldError as error:
        return _one(page, session, name, 422, {error.field: error.message})
    return redirect(_path(name), f"{name} has another password, and is logged out everywhere.")


@router.post("/{name}/logins/end")
def log_out(request: Request, actor: Admin, name: str) -> Response:
    """Log it out everywhere."""
    with state_of(request).database.writing() as session:
        ended = end_logins(session, actor, name)
    return redirect(_path(name), f"{name} is logged out everywhere ({ended} logins).")


@router.get("/{name}/tokens/{token_id}/revoke", dependencies=[needs("admin")])
def ask_to_revoke(page: Page, session: Reading, name: str, token_id: RowId) -> Response:
    """Ask once whether to end one of its tokens."""
    found = find_token(session, find_user(session, name).id, token_id)
    return page("account/revoke.html", token=found, owner=name, back=_path(name))


@router.post("/{name}/tokens/{token_id}/revoke")
def revoke(request: Request, actor: Admin, name: str, token_id: RowId) -> Response:
    """End one of its tokens."""
    with state_of(request).database.writing() as session:
        revoke_token_of(session, actor, name, token_id)
    return redirect(_path(name), "The token is revoked.")


def _list(
    page: PageMaker,
    session: Reading,
    part: PageOf,
    wanted: UserFilter,
    status: int = 200,
    typed: dict[str, str] = _NOTHING,
    errors: dict[str, str] = _NOTHING,
) -> Response:
    url = ListUrl("/users", {"size": 50}, **wanted.model_dump(), page=part.number, size=part.size)
    listed = list_users(session, wanted, part)
    return page("users/list.html", status, users=listed, wanted=wanted, url=url, typed=typed, errors=errors)


def _one(page: PageMaker, session: Reading, name: str, status: int = 200, errors: dict[str, str] = _NOTHING) -> Response:
    found = find_user(session, name)
    logins, tokens = logins_of(session, found.id), tokens_of(session, found.id)
    return page("users/user.html", status, user=found, logins=logins, tokens=tokens, errors=errors)


def _refused(name: str, error: ConflictError) -> Response:
    """Back to the account, with why nothing was done."""
    return redirect(_path(name), f"{error.message}. {error.hint or ''}".strip(), "problem")


def _path(name: str) -> str:
    return f"/users/{quote(name, safe='')}"
