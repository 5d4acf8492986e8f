"""Accounts, logins and tokens as they are read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session

from ..access.actor import SCOPES, Actor
from ..access.logins import handle_of, lasting
from ..database.base import utc_now
from ..errors import NotFoundError
from ..models import ApiToken, LoginSession, User
from ..paging import Paged, PageOf, paged_rows
from .records import LoginRow, TokenRow, UserFilter, UserRow, WhoAmI

__all__ = ["find_token", "find_user", "list_users", "logins_of", "tokens_of", "who_am_i"]

_MOST_TOKENS = 500
"""Shown of one account, the newest first."""


def list_users(session: Session, wanted: UserFilter, page: PageOf) -> Paged[UserRow]:
    """A page of the accounts that fit, by name, in two statements."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.role is not None:
        conditions.append(User.role == wanted.role)
    if wanted.state is not None:
        conditions.append(User.disabled_at.is_(None) if wanted.state == "active" else User.disabled_at.is_not(None))
    if wanted.text:
        conditions.append(User.name.icontains(wanted.text, autoescape=True))
    rows, total = paged_rows(session, _users(utc_now()).where(*conditions).order_by(User.name), page)
    return Paged(items=tuple(UserRow(**row._mapping) for row in rows), total=total, page=page.number, size=page.size)


def find_user(session: Session, name: str) -> UserRow:
    """One account.

    Raises:
        NotFoundError: there is none of this name.
    """
    row = session.execute(_users(utc_now()).where(User.name == name)).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no account {name}")
    return UserRow(**row._mapping)


def logins_of(session: Session, user_id: int, this: str | None = None) -> tuple[LoginRow, ...]:
    """Where an account is logged in, the latest used first.

    Args:
        session: where to read.
        user_id: whose.
        this: the hash of the login that asks.
    """
    own = select(LoginSession).where(LoginSession.user_id == user_id, lasting(utc_now()))
    return tuple(
        LoginRow(
            handle=handle_of(login.token_hash),
            created_at=login.created_at,
            seen_at=login.seen_at,
            expires_at=login.expires_at,
            address=login.address,
            browser=login.browser,
            is_this_one=login.token_hash == this,
        )
        for login in session.scalars(own.order_by(LoginSession.seen_at.desc(), LoginSession.token_hash))
    )


def tokens_of(session: Session, user_id: int) -> tuple[TokenRow, ...]:
    """An account's tokens, those that were revoked too, the newest first."""
    columns = [getattr(ApiToken, name) for name in TokenRow.model_fields]
    own = select(*columns).where(ApiToken.user_id == user_id).order_by(ApiToken.id.desc()).limit(_MOST_TOKENS)
    return tuple(TokenRow(**row._mapping) for row in session.execute(own))


def find_token(session: Session, user_id: int, token_id: int) -> TokenRow:
    """One token of an account.

    Raises:
        NotFoundError: the account has none of this number.
    """
    columns = [getattr(ApiToken, name) for name in TokenRow.model_fields]
    row = session.execute(select(*columns).where(ApiToken.id == token_id, ApiToken.user_id == user_id)).one_or_none()
    if row is None:
        raise NotFoundError(f"this account has no token {token_id}")
    return TokenRow(**row._mapping)


def who_am_i(actor: Actor) -> WhoAmI:
    """What somebody is to the console."""
    scopes = tuple(scope for scope in SCOPES if actor.may(scope))
    return WhoAmI(name=actor.name, role=actor.role, by=actor.by, scopes=scopes)


def _users(now: datetime) -> Select[Any]:
    usable = ApiToken.revoked_at.is_(None) & or_(ApiToken.expires_at.is_(None), ApiToken.expires_at > now)
    logins = select(func.count()).where(LoginSession.user_id == User.id, lasting(now)).scalar_subquery()
    tokens = select(func.count()).where(ApiToken.user_id == User.id, usable).scalar_subquery()
    columns = [getattr(User, name) for name in UserRow.model_fields if hasattr(User, name)]
    return select(*columns, logins.label("logins"), tokens.label("tokens"))
