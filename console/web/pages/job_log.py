"""A job's log: as it grows, and as a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool

from ...database.database import Database
from ...errors import NotFoundError
from ...jobs.queries import log_lines
from ...jobs.records import LogRow
from ...models import Job
from ..state import state_of
from ..streams import STREAM_S, event_text, last_event_id, stream_response
from ..who import Reading, needs
from .builds import JobId

__all__ = ["router"]

router = APIRouter(prefix="/builds/{job_id}", dependencies=[needs("read")])
_LOOK_S = 0.5
_QUIET_S = 15.0
"""After so long without a line something is said all the same: proxies end what is silent."""
_AT_A_TIME = 1_000

AttemptNumber = Annotated[int, Query(ge=1, le=10_000)]
After = Annotated[int, Query(ge=0, le=2**31 - 1)]


@router.get("/log/stream")
async def stream(request: Request, job_id: JobId, attempt: AttemptNumber = 1, after: After = 0) -> Response:
    """An attempt's lines from the one after ``after``, or after the one that a reconnecting browser has had last."""
    database = state_of(request).database
    seen = last_event_id(request.headers)
    await run_in_threadpool(_look, database, job_id, attempt, after)  # 404 while there is still a status to say it with
    return stream_response(_events(database, job_id, attempt, after if seen is None else seen))


@router.get("/log.txt")
def download(request: Request, session: Reading, job_id: JobId, attempt: AttemptNumber | None = None) -> Response:
    """The whole log of an attempt, the latest unless another is named."""
    latest = session.scalar(select(Job.attempt).where(Job.id == job_id))
    if latest is None:
        raise NotFoundError(f"there is no job {job_id}")
    number = attempt or max(1, latest)
    name = f"job-{job_id}-attempt-{number}.log"
    return StreamingResponse(
        _text(state_of(request).database, job_id, number),
        media_type="text/plain; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


@dataclass(frozen=True)
class _Look:
    lines: list[LogRow]
    ended: bool
    """Whether no line will follow these."""


def _look(database: Database, job_id: int, attempt: int, after: int) -> _Look:
    with database.reading() as session:
        # The state first: what is written before an attempt ends is then among the lines.
        told = session.execute(select(Job.state, Job.attempt).where(Job.id == job_id)).one_or_none()
        if told is None:
            raise NotFoundError(f"there is no job {job_id}")
        lines = log_lines(session, job_id, attempt, after=after, most=_AT_A_TIME)
    to_come = told.state == "queued" and told.attempt < attempt
    running = told.state == "running" and told.attempt == attempt
    return _Look(lines, not (to_come or running) and len(lines) < _AT_A_TIME)


async def _events(database: Database, job_id: int, attempt: int, after: int) -> AsyncIterator[str]:
    until, said = time.monotonic() + STREAM_S, time.monotonic()
    yield ": hello\n\n"
    while time.monotonic() < until:
        look = await run_in_threadpool(_look, database, job_id, attempt, after)
        if look.lines:
            after, said = look.lines[-1].number, time.monotonic()
            yield event_text([{"number": line.number, "text": line.text} for line in look.lines], identity=after)
        if look.ended:
            yield event_text({}, identity=after, event="end")
            return
        if len(look.lines) == _AT_A_TIME:
            continue
        if time.monotonic() - said > _QUIET_S:
            said = time.monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(_LOOK_S)


def _text(database: Database, job_id: int, attempt: int) -> Iterator[str]:
    after = 0
    while True:
        with database.reading() as session:
            lines = log_lines(session, job_id, attempt, after=after, most=_AT_A_TIME)
        if not lines:
            return
        after = lines[-1].number
        yield "".join(f"{line.text}\n" for line in lines)
