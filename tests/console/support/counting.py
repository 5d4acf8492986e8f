"""How many statements something takes: a page that takes more with more rows gets slow when nobody looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from roundhouse.console.database.database import Database


@contextmanager
def count_queries(database: Database) -> Iterator[list[str]]:
    """The statements that are sent meanwhile, by whoever."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
