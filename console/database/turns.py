"""Taking turns: what must look before it writes, and not find that somebody else has written meanwhile."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Session

__all__ = ["take_turn"]

_LOCK = 0x7769736865
"""The advisory lock on PostgreSQL: "wishe"."""


def take_turn(session: Session) -> None:
    """Let people's wishes be taken down one after the other until this transaction ends.

    Two of them may come at the same moment: the same form twice, one name for two deployments. Nor do they wait for each
    other's rows in a circle, whatever the order in which they lock them. On SQLite writing transactions take turns by
    themselves.

    Args:
        session: of a transaction that writes, and has read nothing that its decision rests on.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
