"""Browsers in which somebody is logged in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, not_, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..database.database import Database
from ..models import LoginSession, User
from .secrets import hash_of, new_secret

__all__ = ["Logins", "handle_of", "lasting"]

_LONGEST = timedelta(days=14)
_IDLE = timedelta(days=2)
_MOST = 50
"""Of an account at once: a script that logs in each time would leave one behind each time."""
_SEEN_WRITTEN_AFTER = timedelta(minutes=5)
_HANDLE = 16


def handle_of(token_hash: str) -> str:
    """What names a login in pages and addresses: too little of its hash to be worth anything."""
    return token_hash[:_HANDLE]


def lasting(now: datetime) -> ColumnElement[bool]:
    """Whether a login is not over yet, for a WHERE."""
    return and_(LoginSession.expires_at > now, LoginSession.seen_at > now - _IDLE)


class Logins:
    """Begins, finds and ends logins.

    Args:
        clock: this moment.
    """

    def __init__(self, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock

    def begin(self, session: Session, user: User, *, address: str, browser: str, replaces: str | None = None) -> str:
        """Log somebody in; returns the cookie's value, new each time: one that was there before is worth nothing any more.

        Of an account's logins, the 50 that were used last stay.
        """
        if replaces is not None:
            self.end(session, replaces)
        self._make_room(session, user.id)
        now, token = self._clock(), new_secret()
        session.add(
            LoginSession(
                token_hash=hash_of(token),
                user_id=user.id,
                form_secret=new_secret(),
                created_at=now,
                seen_at=now,
                expires_at=now + _LONGEST,
                address=address,
                browser=browser[:200],
            )
        )
        user.last_login_at = now
        return token

    def find(self, session: Session, token: str) -> tuple[LoginSession, User] | None:
        """The login of a cookie, while it lasts and the account may be used."""
        found = session.execute(
            select(LoginSession, User)
            .join(User, User.id == LoginSession.user_id)
            .where(LoginSession.token_hash == hash_of(token))
        ).one_or_none()
        if found is None:
            return None
        login, user = found
        now = self._clock()
        over = now >= login.expires_at or now - login.seen_at >= _IDLE
        return None if over or user.disabled_at is not None else (login, user)

    def saw(self, database: Database, login: LoginSession) -> None:
        """Somebody used it just now; written down at times, since a page asks for many things.

        It is only a note: a page that can be read is not refused because the database cannot be written just now.
        """
        now = self._clock()
        if now - login.seen_at > _SEEN_WRITTEN_AFTER:
            with suppress(SQLAlchemyError), database.writing() as session:
                own = LoginSession.token_hash == login.token_hash
                session.execute(update(LoginSession).where(own).values(seen_at=now))

    def end(self, session: Session, token: str) -> None:
        """Log out."""
        session.execute(delete(LoginSession).where(LoginSession.token_hash == hash_of(token)))

    def end_one(self, session: Session, user_id: int, handle: str) -> bool:
        """Log an account out of one browser, by its handle (:func:`handle_of`); returns whether it was logged in there."""
        own = (LoginSession.user_id == user_id, LoginSession.token_hash.startswith(handle, autoescape=True))
        login = session.scalar(select(LoginSession).where(*own)) if len(handle) == _HANDLE else None
        if login is not None:
            session.delete(login)
        return login is not None

    def end_all(self, session: Session, user_id: int, but: str | None = None) -> int:
        """Log an account out everywhere; returns of how many browsers.

        Args:
            session: a writing transaction.
            user_id: whose.
            but: the hash of a login that stays.
        """
        own = [LoginSession.user_id == user_id]
        if but is not None:
            own.append(LoginSession.token_hash != but)
        ended = len(session.scalars(select(LoginSession.token_hash).where(*own, lasting(self._clock()))).all())
        session.execute(delete(LoginSession).where(*own))
        return ended

    def forget_old(self, session: Session) -> None:
        """Remove logins that are over."""
        session.execute(delete(LoginSession).where(not_(lasting(self._clock()))))

    def _make_room(self, session: Session, user_id: int) -> None:
        """For one more login of an account."""
        own = select(LoginSession.token_hash).where(LoginSession.user_id == user_id)
        stay = own.order_by(LoginSession.seen_at.desc(), LoginSession.token_hash).limit(_MOST - 1)
        session.execute(delete(LoginSession).where(LoginSession.user_id == user_id, LoginSession.token_hash.not_in(stay)))
