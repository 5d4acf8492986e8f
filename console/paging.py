"""Lists in pages."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

__all__ = ["PageOf", "Paged", "paged_rows"]

T = TypeVar("T")


class PageOf(BaseModel):
    """Which part of a list is wanted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(default=1, ge=1, le=100_000)
    size: int = Field(default=50, ge=1, le=200)


class Paged(BaseModel, Generic[T]):
    """A part of a list."""

    model_config = ConfigDict(frozen=True)

    items: tuple[T, ...]
    total: int
    """Of the whole list, with its filters."""
    page: int
    """From 1."""
    size: int
    """Items of a full page."""

    @property
    def pages(self) -> int:
        """How many there are; an empty list has one."""
        return max(1, -(-self.total // self.size))

    @property
    def is_beyond(self) -> bool:
        """Whether a part behind the end was asked for, of a list that has any."""
        return self.total > 0 and self.page > self.pages


def paged_rows(session: Session, wanted: Select[*tuple[Any, ...]], page: PageOf) -> tuple[list[Any], int]:
    """The rows of one page of a query that has its order, and how many there are in all: two statements."""
    total = session.scalar(select(func.count()).select_from(wanted.order_by(None).subquery())) or 0
    rows = session.execute(wanted.limit(page.size).offset((page.number - 1) * page.size)).all()
    return [row[0] if len(row) == 1 else row for row in rows], total
