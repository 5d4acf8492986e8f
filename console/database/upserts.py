"""INSERT that knows what to do where the row is there already: both databases can, each in its own dialect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from .base import Base

__all__ = ["insert_missing", "insert_or_update"]


def insert_missing(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Add those rows that are not there."""
    if rows:
        session.execute(_insert(session, table).on_conflict_do_nothing(), list(rows))


def insert_or_update(
    session: Session, table: type[Base], values: Mapping[str, Any], *, key: Collection[str], keep: Collection[str] = ()
) -> None:
    """Add a row, or make the one with its key the same.

    Args:
        session: of a transaction that writes.
        table: where.
        values: of the row, by column.
        key: columns that are unique together.
        keep: columns that stay as they are in a row that is there.
    """
    statement = _insert(session, table).values(dict(values))
    changed = {name: statement.excluded[name] for name in values if name not in (*key, *keep)}
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=changed))


def _insert(session: Session, table: type[Base]) -> Any:
    """The dialects' two forms have no common type."""
    return (postgresql if session.get_bind().dialect.name == "postgresql" else sqlite).insert(table)
