"""Accounts, for programs of admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from ...access.accounts import hash_password
from ...accounts.actions import add_user, change_role, end_logins, reset_password, revoke_token_of, set_enabled
from ...accounts.queries import find_user, list_users, logins_of, tokens_of
from ...accounts.records import LoginRow, TokenRow, UserRow
from ...models import Role
from ...paging import Paged
from ..access_lists import RowId, UsersWanted
from ..page import ListPage
from ..state import state_of
from ..who import Admin, Reading, needs
from .asked import UserName

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/users", tags=["users"])

_Password = Annotated[SecretStr, Field(max_length=1024)]


class NewUser(BaseModel):
    """An account to make."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=200)]
    password: _Password
    role: Role


class UserChanges(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    role: Role | None = None
    enabled: bool | None = None
    password: _Password | None = None
    """A new one ends all logins."""


@router.get("", dependencies=[needs("admin")])
def users(session: Reading, part: ListPage, wanted: UsersWanted) -> Paged[UserRow]:
    """Every account, with filters."""
    return list_users(session, wanted, part)


@router.post("", status_code=201)
def add(request: Request, response: Response, actor: Admin, new: NewUser) -> UserRow:
    """Make an account."""
    hashed = hash_password(new.password.get_secret_value())
    with state_of(request).database.writing() as session:
        user = add_user(session, actor, new.name, hashed, new.role)
        response.headers["location"] = f"/api/v1/users/{user.name}"
        return find_user(session, user.name)


@router.get("/{name}", dependencies=[needs("admin")])
def user(session: Reading, name: UserName) -> UserRow:
    """One account."""
    return find_user(session, name)


@router.patch("/{name}")
def change(request: Request, actor: Admin, name: UserName, changes: UserChanges) -> UserRow:
    """Change an account: all of it, or nothing when one thing cannot be."""
    hashed = None if changes.password is None else hash_password(changes.password.get_secret_value())
    with state_of(request).database.writing() as session:
        if changes.role is not None:
            change_role(session, actor, name, changes.role)
        if changes.enabled is not None:
            set_enabled(session, actor, name, enabled=changes.enabled)
        if hashed is not None:
            reset_password(session, actor, name, hashed)
        session.flush()
        return find_user(session, name)


@router.get("/{name}/logins", dependencies=[needs("admin")])
def logins(session: Reading, name: UserName) -> tuple[LoginRow, ...]:
    """Where it is logged in."""
    return logins_of(session, find_user(session, name).id)


@router.delete("/{name}/logins", status_code=204)
def log_out(request: Request, actor: Admin, name: UserName) -> None:
    """Log it out everywhere."""
    with state_of(request).database.writing() as session:
        end_logins(session, actor, name)


@router.get("/{name}/tokens", dependencies=[needs("admin")])
def tokens(session: Reading, name: UserName) -> tuple[TokenRow, ...]:
    """Its tokens, without what they are."""
    return tokens_of(session, find_user(session, name).id)


@router.delete("/{name}/tokens/{token_id}", status_code=204)
def revoke(request: Request, actor: Admin, name: UserName, token_id: RowId) -> None:
    """End one of its tokens; a second time changes nothing."""
    with state_of(request).database.writing() as session:
        revoke_token_of(session, actor, name, token_id)
