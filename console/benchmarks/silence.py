"""Records of which nobody tells any more: one that was running then may have ended long ago."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, case, or_, select
from sqlalchemy.orm import Session

from roundhouse.serve.history import RecordState

from ..database.base import utc_now
from ..jobs.liveness import is_alive
from ..models import BenchmarkRun, EvaluationRun, Worker

__all__ = ["is_in_state", "is_silent", "may_record", "shown_state"]

Table = type[BenchmarkRun] | type[EvaluationRun]


def is_silent(table: Table, now: datetime) -> ColumnElement[bool]:
    """Whether a record goes on as far as is known, and its host and home have no worker that would tell otherwise."""
    there = select(Worker.id).where(Worker.host == table.host, Worker.home == table.home, is_alive(now))
    return and_(table.state == "running", ~there.correlate(table).exists())


def may_record(session: Session, row: BenchmarkRun | EvaluationRun, host: str, home: str) -> bool:
    """Whether what a home has of a record is to be written down. It is not where the record was deleted here, or another
    home has it, too: the first counts, for as long as that has a worker. A home that was moved takes its records along.
    """
    if row.deleted_at is not None:
        return False
    if (row.host, row.home) == (host, home):
        return True
    there = (Worker.host == row.host, Worker.home == row.home, is_alive(utc_now()))
    return bool(row.home) and session.scalar(select(Worker.id).where(*there).limit(1)) is None


def shown_state(table: Table, now: datetime) -> ColumnElement[Any]:
    """The state that pages show: nothing runs for ever. When its worker is back, that tells what became of it."""
    return case((is_silent(table, now), "interrupted"), else_=table.state)


def is_in_state(table: Table, state: RecordState, now: datetime) -> ColumnElement[bool]:
    """Whether it is shown in this state, for a WHERE."""
    if state == "interrupted":
        return or_(table.state == state, is_silent(table, now))
    if state == "running":
        return and_(table.state == state, ~is_silent(table, now))
    return table.state == state
