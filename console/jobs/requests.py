"""What people do with jobs: ask for one, cancel it, have it done again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ..database.base import utc_now
from ..database.turns import take_turn
from ..models import LIVE_JOB_STATES, Job, JobKind
from .ending import FORGOTTEN, end_job

__all__ = ["NewJob", "cancel_job", "enqueue", "retry_job"]


@dataclass(frozen=True)
class NewJob:
    """A job that somebody asks for."""

    kind: JobKind
    subject: str
    payload: dict[str, Any] = field(default_factory=dict)
    requested_by: str = ""
    idempotency_key: str | None = None
    engine_id: str | None = None
    deployment_id: str | None = None
    target: str | None = None
    host: str | None = None
    home: str | None = None
    most_attempts: int = 1
    sealed: str | None = None
    """Secrets, encrypted."""


def enqueue(session: Session, new: NewJob) -> Job:
    """Put a job in line. Who asks again with the same key gets the job that is there."""
    take_turn(session)
    if new.idempotency_key is not None:
        same = (Job.requested_by == new.requested_by, Job.idempotency_key == new.idempotency_key)
        there = session.scalar(select(Job).where(*same))
        if there is not None:
            if (there.kind, there.payload) != (new.kind, new.payload):
                raise UsageError(f"the key {new.idempotency_key!r} was used for another request (job {there.id})")
            return there
    job = Job(
        kind=new.kind,
        state="queued",
        subject=new.subject,
        payload=new.payload,
        sealed=new.sealed,
        engine_id=new.engine_id,
        deployment_id=new.deployment_id,
        target=new.target,
        host=new.host,
        home=new.home,
        requested_by=new.requested_by,
        idempotency_key=new.idempotency_key,
        created_at=utc_now(),
        most_attempts=new.most_attempts,
    )
    session.add(job)
    session.flush()
    return job


def cancel_job(job: Job) -> None:
    """Cancel a job: at once while it waits; one that runs is ended by its worker. One that has ended stays as it is."""
    if job.state == "queued":
        end_job(job, "cancelled", utc_now())
    if job.state in LIVE_JOB_STATES and job.cancel_requested_at is None:
        job.cancel_requested_at = utc_now()


def retry_job(job: Job) -> None:
    """Have a job that did not succeed done once more.

    Raises:
        UsageError: it is under way, or has succeeded, or needs a secret that was forgotten when it ended.
    """
    if job.state in (*LIVE_JOB_STATES, "succeeded"):
        raise UsageError(f"job {job.id} is {job.state}: there is nothing to do again")
    if job.sealed == FORGOTTEN:
        raise UsageError(
            f"job {job.id} needs an API key, which was deleted when it ended", hint="Ask for the same anew, with the key."
        )
    job.state = "queued"
    job.most_attempts = job.attempt + 1
    job.ended_at = job.cancel_requested_at = job.result = job.error = job.hint = None
