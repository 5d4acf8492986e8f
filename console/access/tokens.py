"""Tokens of programs: made once, shown once, kept as a hash."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..database.database import Database
from ..errors import FieldError
from ..models import ApiToken, User
from .actor import SCOPES, Actor, Scope
from .secrets import hash_of, new_secret

__all__ = ["add_token", "find_token", "revoke_token"]

_PREFIX = "rh_"
_SHOWN = 8
_USE_WRITTEN_AFTER = timedelta(minutes=1)


def add_token(
    session: Session, user_id: int, name: str, scopes: Sequence[str], expires_at: datetime | None
) -> tuple[ApiToken, str]:
    """Make a token; returns it with its secret, which is told only now.

    Raises:
        FieldError: it has no name, an unknown scope or none, or has expired already.
    """
    if not name.strip():
        raise FieldError("name", "a token has a name: what will use it?")
    if unknown := [scope for scope in scopes if scope not in SCOPES]:
        raise FieldError("scopes", f"there is no scope {unknown[0]!r}", hint=f"Scopes are {', '.join(SCOPES)}.")
    if not scopes:
        raise FieldError("scopes", "a token without scopes could do nothing", hint=f"Scopes are {', '.join(SCOPES)}.")
    if expires_at is not None and expires_at <= utc_now():
        raise FieldError("days", "the token would have expired already")
    secret = new_secret(_PREFIX)
    token = ApiToken(
        user_id=user_id,
        name=name.strip()[:100],
        token_hash=hash_of(secret),
        shown_start=secret[:_SHOWN],
        scopes=list(dict.fromkeys(scopes)),
        created_at=utc_now(),
        expires_at=expires_at,
    )
    session.add(token)
    session.flush()
    return token, secret


def find_token(database: Database, session: Session, secret: str, address: str) -> Actor | None:
    """Whom a token speaks for, while it may be used and its account may; that it was used is written down at times."""
    found = session.execute(
        select(ApiToken, User).join(User, User.id == ApiToken.user_id).where(ApiToken.token_hash == hash_of(secret))
    ).one_or_none()
    if found is None:
        return None
    token, user = found
    now = utc_now()
    if token.revoked_at is not None or user.disabled_at is not None or (token.expires_at and token.expires_at <= now):
        return None
    session.commit()  # nobody holds one connection while waiting for another
    if token.used_at is None or now - token.used_at > _USE_WRITTEN_AFTER:
        with suppress(SQLAlchemyError), database.writing() as writing:  # only a note; reading goes on without it
            writing.execute(update(ApiToken).where(ApiToken.id == token.id).values(used_at=now))
    scopes: frozenset[Scope] = frozenset(token.scopes)  # type: ignore[arg-type]  # checked when it was made
    return Actor(user.id, user.name, user.role, f"token {token.name}", address, scopes)


def revoke_token(token: ApiToken) -> None:
    """End a token; a second time changes nothing."""
    if token.revoked_at is None:
        token.revoked_at = utc_now()
