"""A job's log: as it grows, and as a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy import select

from ...database.database import Database
from ...errors import NotFoundError
from ...jobs.queries import log_lines
from ...models import Job
from ..api.asked import JobId
from ..events import Event, Look, follow
from ..state import state_of
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/builds/{job_id}", dependencies=[needs("read")])
_AT_A_TIME = 1_000

AttemptNumber = Annotated[int, Query(ge=1, le=10_000)]


@router.get("/log/stream")
def stream(request: Request, session: Reading, job_id: JobId, attempt: AttemptNumber = 1) -> Response:
    """An attempt's lines, from the one after ``?after=``, or after the one that a reconnecting browser has had last."""
    _require(session.scalar(select(Job.id).where(Job.id == job_id)), job_id)  # while there is still a status to say it with
    database = state_of(request).database
    return follow(request, lambda after: _look(database, job_id, attempt, after))


@router.get("/log.txt")
def download(request: Request, session: Reading, job_id: JobId, attempt: AttemptNumber | None = None) -> Response:
    """The whole log of an attempt, the latest unless another is named."""
    latest = _require(session.scalar(select(Job.attempt).where(Job.id == job_id)), job_id)
    number = attempt or max(1, latest)
    name = f"job-{job_id}-attempt-{number}.log"
    return StreamingResponse(
        _text(state_of(request).database, job_id, number),
        media_type="text/plain; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


def _require(found: int | None, job_id: int) -> int:
    if found is None:
        raise NotFoundError(f"there is no job {job_id}")
    return found


def _look(database: Database, job_id: int, attempt: int, after: int) -> Look:
    """The lines after one; it has ended when no line will follow them."""
    with database.reading() as session:
        # The state first: what is written before an attempt ends is then among the lines.
        told = session.execute(select(Job.state, Job.attempt).where(Job.id == job_id)).one_or_none()
        lines = log_lines(session, job_id, attempt, after=after, most=_AT_A_TIME)
    to_come = told is not None and told.state == "queued" and told.attempt < attempt
    running = told is not None and told.state == "running" and told.attempt == attempt
    told_now = [{"number": line.number, "text": line.text} for line in lines]
    events = [Event(told_now, id=lines[-1].number)] if lines else []
    return Look(events, ended=not (to_come or running) and len(lines) < _AT_A_TIME)


def _text(database: Database, job_id: int, attempt: int) -> Iterator[str]:
    after = 0
    while True:
        with database.reading() as session:
            lines = log_lines(session, job_id, attempt, after=after, most=_AT_A_TIME)
        if not lines:
            return
        after = lines[-1].number
        yield "".join(f"{line.text}\n" for line in lines)
