"""What an attempt leaves behind for people to read: its stages and its log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from ..database.upserts import insert_missing
from ..models import LogLine, Stage
from .claim import Claim

__all__ = ["add_lines", "begin_stage", "end_stages", "stage_done"]


def begin_stage(session: Session, claim: Claim, name: str, what: str, now: datetime) -> None:
    """A part of the work begins; the one before has ended. A part that begins once more goes on where it is in the list."""
    end_stages(session, claim, now)
    again = session.get(Stage, (claim.job_id, claim.attempt, name))
    if again is not None:
        again.ended_at, again.what, again.done, again.result = None, what, None, None
        return
    position = session.scalar(select(func.count()).select_from(Stage).where(*_own(claim))) or 0
    session.add(Stage(job_id=claim.job_id, attempt=claim.attempt, name=name, position=position, began_at=now, what=what))
    session.flush()


def stage_done(session: Session, claim: Claim, name: str, done: float) -> None:
    """How much of a part is done, from 0 to 1."""
    session.execute(update(Stage).where(*_own(claim), Stage.name == name).values(done=min(1.0, max(0.0, done))))


def end_stages(session: Session, claim: Claim, now: datetime, result: str | None = None) -> None:
    """Whatever was under way has ended; what came of it, in words."""
    session.execute(update(Stage).where(*_own(claim), Stage.ended_at.is_(None)).values(ended_at=now, result=result))


def add_lines(session: Session, claim: Claim, first_number: int, lines: Iterable[str], now: datetime) -> None:
    """Add lines to the log, numbered from ``first_number``; those that are there already stay as they are."""
    own = {"job_id": claim.job_id, "attempt": claim.attempt, "at": now}
    rows = [{**own, "number": number, "text": text} for number, text in enumerate(lines, first_number)]
    insert_missing(session, LogLine, rows)


def _own(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return Stage.job_id == claim.job_id, Stage.attempt == claim.attempt
