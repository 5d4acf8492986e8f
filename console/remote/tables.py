"""Tables on a terminal: what all views are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

__all__ = ["facts_of", "table_of", "time_text"]

_NUMBERS = (
    "job",
    "size",
    "agreement",
    "put in",
    "stopped",
    "pid",
    "free",
    "at once",
    "TTFT",
    "between",
    "value",
    "against",
    "worst",
)


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table; columns of numbers stand to the right."""
    table = Table(box=SIMPLE)
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in _NUMBERS or column.endswith("/s") else "left",
            no_wrap=column in ("id", "job"),
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def facts_of(rows: Iterable[tuple[str, str | None]]) -> Table:
    """Names and what stands behind them; what is None is left out."""
    table = Table(box=None, show_header=False, padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            table.add_row(name, Text(value))
    return table


def time_text(moment: datetime) -> str:
    """In UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
