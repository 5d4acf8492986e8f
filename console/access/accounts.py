"""Accounts and their passwords."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from typing import NewType

from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..errors import FieldError
from ..models import Role, User

__all__ = ["HashedPassword", "add_account", "any_accounts", "hash_password", "password_fits"]

HashedPassword = NewType("HashedPassword", str)
"""What is kept of a password: salted, and slow to try."""

_SHORTEST, _LONGEST = 12, 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_passwords = PasswordHash((Argon2Hasher(),))
_at_once = threading.BoundedSemaphore(4)
"""Each hash takes 64 MiB and a core for a moment: logins wait in line rather than take all of the machine."""


def any_accounts(session: Session) -> bool:
    """Whether the first account has been made."""
    return bool(session.scalar(select(func.count()).select_from(User)))


def add_account(session: Session, name: str, password: HashedPassword, role: Role) -> User:
    """Make an account.

    Raises:
        FieldError: the name is taken or no name.
    """
    name = name.strip().lower()
    if not _NAME.fullmatch(name):
        raise FieldError("name", f"{name!r} is no account name", hint="Use letters, digits, dots, dashes and underscores.")
    if session.scalar(select(User).where(User.name == name)) is not None:
        raise FieldError("name", f"there is an account {name} already")
    user = User(name=name, role=role, password_hash=password, created_at=utc_now())
    session.add(user)
    session.flush()
    return user


def hash_password(password: str) -> HashedPassword:
    """What to keep of a password. It waits for its turn, for seconds when many log in: never within a transaction that writes.

    Raises:
        FieldError: it is too short or too long, or no text.
    """
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise FieldError("password", f"a password has {_SHORTEST} to {_LONGEST:,} characters")
    if not _is_text(password):
        raise FieldError("password", "a password is text; half of a character is none")
    with _at_once:
        return HashedPassword(_passwords.hash(_as_typed(password)))


def password_fits(user: User | None, password: str) -> bool:
    """Whether this is the account's password. Takes as long for no account as for a wrong password."""
    with _at_once:
        fits = _passwords.verify(_as_typed(password if _is_text(password) else ""), user.password_hash if user else _nobody())
    return fits and user is not None and user.disabled_at is None


@lru_cache
def _nobody() -> str:
    """What a password is compared with where there is no account: it must take as long to say no."""
    return _passwords.hash("nobody has this password")


def _as_typed(password: str) -> str:
    """The same text however a keyboard composes its letters."""
    return unicodedata.normalize("NFKC", password)


def _is_text(password: str) -> bool:
    """JSON can carry lone halves of characters, which no encoding has."""
    return password.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in password)
