"""Choices of one account, such as the columns of a list: read, and kept."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from ..database.upserts import insert_or_update
from ..errors import FieldError
from ..models import Preference

__all__ = ["forget_preference", "preference", "set_preference"]

_MOST_BYTES, _MOST_KEYS, _LONGEST_KEY = 4_096, 100, 64


def preference(session: Session, user_id: int, key: str) -> Any:
    """What an account has chosen; None where it has not."""
    return session.scalar(select(Preference.value).where(Preference.user_id == user_id, Preference.key == key))


def set_preference(session: Session, user_id: int, key: str, value: Any) -> None:
    """Keep a choice.

    Args:
        session: a writing transaction.
        user_id: whose.
        key: what of, such as ``benchmarks.columns``.
        value: anything that JSON can say.

    Raises:
        FieldError: key or value is too long, or there are too many.
    """
    if not 0 < len(key) <= _LONGEST_KEY:
        raise FieldError("key", f"a key has 1 to {_LONGEST_KEY} characters")
    size = len(json.dumps(value, allow_nan=False).encode())
    if size > _MOST_BYTES:
        raise FieldError("value", f"a choice has {_MOST_BYTES:,} bytes at most; this has {size:,}")
    others = select(func.count()).select_from(Preference).where(Preference.user_id == user_id, Preference.key != key)
    if (session.scalar(others) or 0) >= _MOST_KEYS:
        raise FieldError("key", f"an account has {_MOST_KEYS} choices at most")
    insert_or_update(session, Preference, {"user_id": user_id, "key": key, "value": value}, key=["user_id", "key"])


def forget_preference(session: Session, user_id: int, key: str) -> None:
    """Go back to what is usual."""
    session.execute(delete(Preference).where(Preference.user_id == user_id, Preference.key == key))
