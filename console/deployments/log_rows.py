"""A deployment's log in the database: the last lines, each under its own number whoever brings it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..database.upserts import insert_missing
from ..models import DeploymentLogLine

__all__ = ["KEPT_LINES", "add_lines", "last_numbers"]

KEPT_LINES = 2000


def last_numbers(session: Session, deployment_ids: Sequence[str]) -> dict[str, int]:
    """The number of the last line of each that has any."""
    line = DeploymentLogLine
    found = select(line.deployment_id, func.max(line.number)).where(line.deployment_id.in_(deployment_ids))
    return dict(session.execute(found.group_by(line.deployment_id)).all())


def add_lines(session: Session, deployment_id: str, lines: Iterable[tuple[int, str]]) -> None:
    """Add numbered lines; those that are there already stay as they are, and the oldest ones go."""
    at = utc_now()
    # PostgreSQL takes no zero byte in a text.
    rows = [
        {"deployment_id": deployment_id, "number": number, "at": at, "text": text.replace("\0", "�")} for number, text in lines
    ]
    if rows:
        insert_missing(session, DeploymentLogLine, rows)
        last = max(int(str(row["number"])) for row in rows)
        line = DeploymentLogLine
        session.execute(delete(line).where(line.deployment_id == deployment_id, line.number <= last - KEPT_LINES))
