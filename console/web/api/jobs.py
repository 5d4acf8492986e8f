"""Jobs of every kind for programs: lists, one of them, its log; cancel and retry."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from ...builds.actions import ask_cancel, ask_retry
from ...errors import NotFoundError
from ...jobs.queries import job_detail, list_jobs, log_lines
from ...jobs.records import JobAnswer, JobDetail, JobRow, LogAnswer
from ...jobs.waiting import why_waiting
from ...paging import Paged
from ..job_list import JobsListed
from ..page import ListPage
from ..state import state_of
from ..who import BuilderOrDeployer, Reading, needs
from .asked import JobId

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])


@router.get("", dependencies=[needs("read")])
def list_all(session: Reading, wanted: JobsListed, part: ListPage) -> Paged[JobRow]:
    """The jobs, the newest first."""
    return list_jobs(session, wanted, part)


@router.get("/{job_id}", dependencies=[needs("read")])
def one(session: Reading, job_id: JobId) -> JobAnswer:
    """One job."""
    job = job_detail(session, job_id)
    return JobAnswer(job=job, waiting=why_waiting(session, job))


@router.get("/{job_id}/log", dependencies=[needs("read")])
def log(
    session: Reading,
    job_id: JobId,
    attempt: Annotated[int | None, Query(ge=1, le=10_000)] = None,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    most: Annotated[int, Query(ge=1, le=5_000)] = 1_000,
) -> LogAnswer:
    """Lines of an attempt's log, of the latest unless another is named."""
    job = job_detail(session, job_id)
    number = attempt or max(1, job.attempt)
    if attempt is not None and attempt > job.attempt:
        raise NotFoundError(f"job {job_id} has had {job.attempt} attempts")
    return LogAnswer(attempt=number, lines=tuple(log_lines(session, job_id, number, after=after, most=most)))


@router.post("/{job_id}/cancel")
def cancel(request: Request, actor: BuilderOrDeployer, job_id: JobId) -> JobDetail:
    """Cancel a job that waits or runs, with the scope that asked for it; asking again changes nothing."""
    database = state_of(request).database
    with database.writing() as session:
        ask_cancel(session, actor, job_id)
    with database.reading() as session:
        return job_detail(session, job_id)


@router.post("/{job_id}/retry")
def retry(request: Request, actor: BuilderOrDeployer, job_id: JobId) -> JobDetail:
    """Have a job that did not succeed done once more, with the scope that asked for it."""
    database = state_of(request).database
    with database.writing() as session:
        ask_retry(session, actor, job_id)
    with database.reading() as session:
        return job_detail(session, job_id)
