"""What admins do to accounts. There is always an enabled admin left, whoever acts at the same time."""

from __future__ import annotations

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from ..access.accounts import HashedPassword, add_account
from ..access.actor import Actor
from ..access.audit import audit
from ..access.logins import Logins
from ..access.tokens import revoke_token
from ..database.base import utc_now
from ..errors import ConflictError, NotFoundError
from ..models import ApiToken, Role, User

__all__ = ["add_user", "change_role", "end_logins", "reset_password", "revoke_token_of", "set_enabled"]


def add_user(session: Session, actor: Actor, name: str, password: HashedPassword, role: Role) -> User:
    """Make an account.

    Raises:
        FieldError: the name is taken or no name.
    """
    actor.require("admin")
    user = add_account(session, name, password, role)
    audit(session, actor, "user.add", "user", user.name, role=role)
    return user


def change_role(session: Session, actor: Actor, name: str, role: Role) -> None:
    """Give an account another role; it holds from its next request on, for its tokens too.

    Raises:
        NotFoundError: there is no such account.
        ConflictError: it is the last enabled admin.
    """
    actor.require("admin")
    user, others = _locked_with_admins(session, name)
    if user.role == role:
        return
    if role != "admin":
        _require_another_admin(user, others, "become a lesser role")
    audit(session, actor, "user.role", "user", user.name, before=user.role, after=role)
    user.role = role


def set_enabled(session: Session, actor: Actor, name: str, *, enabled: bool) -> None:
    """Let an account be used again, or no more: then its logins end, and its tokens rest.

    Raises:
        NotFoundError: there is no such account.
        ConflictError: it is the last enabled admin.
    """
    actor.require("admin")
    user, others = _locked_with_admins(session, name)
    if (user.disabled_at is None) == enabled:
        return
    if not enabled:
        _require_another_admin(user, others, "be disabled")
        Logins().end_all(session, user.id)
    user.disabled_at = None if enabled else utc_now()
    audit(session, actor, "user.enable" if enabled else "user.disable", "user", user.name)


def reset_password(session: Session, actor: Actor, name: str, password: HashedPassword) -> None:
    """Give an account another password, and end its logins. Its tokens stay.

    Raises:
        NotFoundError: there is no such account.
    """
    actor.require("admin")
    user = _locked(session, name)
    user.password_hash = password
    ended = Logins().end_all(session, user.id)
    audit(session, actor, "user.password", "user", user.name, logins_ended=ended)


def end_logins(session: Session, actor: Actor, name: str) -> int:
    """Log an account out everywhere; returns of how many browsers.

    Raises:
        NotFoundError: there is no such account.
    """
    actor.require("admin")
    user = _locked(session, name)
    ended = Logins().end_all(session, user.id)
    audit(session, actor, "user.end-logins", "user", user.name, logins_ended=ended)
    return ended


def revoke_token_of(session: Session, actor: Actor, name: str, token_id: int) -> None:
    """End anybody's token.

    Raises:
        NotFoundError: there is no such account, or it has no such token.
    """
    actor.require("admin")
    user = _locked(session, name)
    token = session.scalar(select(ApiToken).where(ApiToken.id == token_id, ApiToken.user_id == user.id))
    if token is None:
        raise NotFoundError(f"there is no token {token_id} of {user.name}")
    if token.revoked_at is None:
        revoke_token(token)
        audit(session, actor, "token.revoke", "token", str(token.id), name=token.name, owner=user.name)


def _locked(session: Session, name: str) -> User:
    """The account; no other transaction changes it meanwhile."""
    user = session.scalar(select(User).where(User.name == name).with_for_update())
    if user is None:
        raise NotFoundError(f"there is no account {name}")
    return user


def _locked_with_admins(session: Session, name: str) -> tuple[User, list[User]]:
    """The account, and the other admins that can log in.

    All are locked at once and in one order: two admins cannot take each other's role at the same time, nor wait for each other
    for ever.
    """
    can_be_admin = and_(User.role == "admin", User.disabled_at.is_(None))
    locked = select(User).where(or_(User.name == name, can_be_admin)).order_by(User.id).with_for_update()
    there = session.scalars(locked).all()
    user = next((user for user in there if user.name == name), None)
    if user is None:
        raise NotFoundError(f"there is no account {name}")
    return user, [other for other in there if other is not user]


def _require_another_admin(user: User, others: list[User], what: str) -> None:
    """Refuse to leave nobody who could make an admin."""
    if user.role == "admin" and user.disabled_at is None and not others:
        raise ConflictError(
            f"the only admin that can log in is {user.name}, who cannot {what}", hint="Make somebody else an admin first."
        )
