"""What everybody does to their own account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from ..access.accounts import HashedPassword, hash_password, password_fits
from ..access.actor import Actor
from ..access.audit import audit
from ..access.logins import Logins
from ..access.tokens import add_token, revoke_token
from ..database.base import utc_now
from ..database.turns import take_turn
from ..errors import FieldError, ForbiddenError, NotFoundError
from ..models import ApiToken, User
from .records import NewToken, TokenRow

__all__ = [
    "MOST_DAYS",
    "PasswordChange",
    "change_own_password",
    "checked_change",
    "end_other_logins",
    "end_own_login",
    "make_token",
    "revoke_own_token",
]

MOST_DAYS = 3650
"""Until a token expires, unless it never does."""
_MOST_TOKENS = 200
"""That one account can have in use."""


@dataclass(frozen=True)
class PasswordChange:
    """What is kept of a password, and what is to be kept instead."""

    before: str
    after: HashedPassword


def checked_change(user: User, old: str, new: str, again: str) -> PasswordChange:
    """The first half of :func:`change_own_password`: it hashes, which takes a while, and needs no transaction.

    Raises:
        FieldError: the old one is wrong, the new one is too short, or it is typed differently the second time.
    """
    if not password_fits(user, old):
        raise FieldError("old", "this is not your password")
    if new != again:
        raise FieldError("again", "the two passwords differ")
    return PasswordChange(user.password_hash, hash_password(new))


def change_own_password(session: Session, actor: Actor, change: PasswordChange) -> User:
    """Change it; all logins end. The browser in which it is done gets a new one from the caller, in this transaction.

    Raises:
        ForbiddenError: a token asks.
        FieldError: it has been changed since the old one was checked.
    """
    _in_person(actor)
    user = session.scalars(select(User).where(User.id == actor.user_id).with_for_update()).one()
    if user.password_hash != change.before:
        raise FieldError("old", "your password was changed elsewhere meanwhile")
    user.password_hash = change.after
    ended = Logins().end_all(session, user.id)
    audit(session, actor, "user.password", "user", user.name, logins_ended=ended)
    return user


def end_own_login(session: Session, actor: Actor, handle: str) -> None:
    """Log out somewhere else.

    Raises:
        ForbiddenError: a token asks.
        NotFoundError: this account has no such login.
    """
    _in_person(actor)
    if not Logins().end_one(session, actor.user_id, handle):
        raise NotFoundError(f"you have no login {handle}", hint="It may have ended already.")
    audit(session, actor, "user.end-login", "user", actor.name, login=handle)


def end_other_logins(session: Session, actor: Actor) -> int:
    """Log out everywhere but here; returns of how many browsers.

    Raises:
        ForbiddenError: a token asks.
    """
    _in_person(actor)
    ended = Logins().end_all(session, actor.user_id, but=actor.login)
    audit(session, actor, "user.end-logins", "user", actor.name, logins_ended=ended)
    return ended


def make_token(session: Session, actor: Actor, name: str, scopes: Sequence[str], days: int | None) -> NewToken:
    """Make a token of one's own.

    Args:
        session: a writing transaction.
        actor: whose it will be.
        name: what will use it.
        scopes: what for; no more than the role allows.
        days: until it expires; None: never.

    Raises:
        ForbiddenError: a token asks: one that is lost must not be able to make others.
        FieldError: no name or one that a token in use has, no scope, one that the role does not allow, or a time out of range.
    """
    _in_person(actor)
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise FieldError("days", f"a token lasts from 1 to {MOST_DAYS:,} days, or for ever")
    expires_at = None if days is None else utc_now() + timedelta(days=days)
    take_turn(session)
    in_use = session.scalars(_names_in_use(actor)).all()
    if len(in_use) >= _MOST_TOKENS:
        raise FieldError("name", f"you have {_MOST_TOKENS} tokens in use", hint="Revoke some that nothing uses any more.")
    if name.strip() in in_use:  # the same form a second time, too: its secret was shown the first time, and only then
        raise FieldError("name", f"you have a token {name.strip()} already: take another name, or revoke that one first")
    token, secret = add_token(session, actor.user_id, name, scopes, expires_at)
    if beyond := [scope for scope in token.scopes if not actor.may(scope)]:  # type: ignore[arg-type]  # a scope by now
        raise FieldError("scopes", f"a {actor.role} may not {beyond[0]}, and neither may their tokens")
    audit(session, actor, "token.make", "token", str(token.id), name=token.name, scopes=token.scopes, days=days)
    return NewToken(
        token=TokenRow.model_validate({field: getattr(token, field) for field in TokenRow.model_fields}), secret=secret
    )


def revoke_own_token(session: Session, actor: Actor, token_id: int) -> None:
    """End one's own token; a second time changes nothing.

    Raises:
        ForbiddenError: a token asks.
        NotFoundError: this account has no such token.
    """
    _in_person(actor)
    token = session.scalar(select(ApiToken).where(ApiToken.id == token_id, ApiToken.user_id == actor.user_id))
    if token is None:
        raise NotFoundError(f"you have no token {token_id}")
    if token.revoked_at is None:
        revoke_token(token)
        audit(session, actor, "token.revoke", "token", str(token.id), name=token.name, owner=actor.name)


def _names_in_use(actor: Actor) -> Select[str]:
    own = (ApiToken.user_id == actor.user_id, ApiToken.revoked_at.is_(None))
    return select(ApiToken.name).where(*own, or_(ApiToken.expires_at.is_(None), ApiToken.expires_at > utc_now()))


def _in_person(actor: Actor) -> None:
    if actor.login is None:
        raise ForbiddenError("a token cannot do this", hint="Log in with a browser.")
