"""Inserting what may be there already: two processes that bring the same do no harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from .base import Base

__all__ = ["insert_new"]


def insert_new(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows that break no uniqueness, and leave out the others.

    Args:
        session: a writing transaction.
        table: where.
        rows: by the names of the columns.
    """
    if not rows:
        return
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    session.execute(insert(table).on_conflict_do_nothing(), list(rows))
