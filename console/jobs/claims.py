"""What workers do with jobs: take one, keep it, report, and end it.

A worker that takes a job gets a *lease* on it, which it renews, and a *fence*: a number that grows each time the job is taken.
Everything it reports carries the fence. A worker that was thought dead, because it was asleep or cut off, finds its fence
outdated and its claim lost: it can no longer report or publish anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from roundhouse.errors import RoundhouseError

from ..database.base import utc_now
from ..database.database import Database
from ..models import Job, JobState, LogLine, Stage, Worker

__all__ = ["Claim", "LeaseLostError", "Worklist"]

LEASE = timedelta(seconds=30)


class LeaseLostError(RoundhouseError):
    """Another worker has the job by now, or nobody may do it any more."""


@dataclass(frozen=True)
class Claim:
    """A job that a worker has."""

    job_id: int
    attempt: int
    fence: int
    kind: str
    payload: dict[str, Any]


class Worklist:
    """The jobs as workers see them.

    Args:
        database: where they are.
        clock: this moment. Hosts whose clocks differ by as much as a lease would take each other's jobs.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock

    def claim(self, worker: Worker) -> Claim | None:
        """Take the oldest job that this worker can run; no other worker gets it."""
        now = self._clock()
        can_run = (
            or_(Job.target.is_(None), Job.target.in_(worker.targets)),
            or_(Job.host.is_(None), Job.host == worker.host),
            or_(Job.home.is_(None), Job.home == worker.home),
        )
        with self._database.writing() as session:
            # On SQLite the whole transaction is alone; elsewhere rows that others are just taking are passed over.
            oldest = select(Job).where(Job.state == "queued", *can_run).order_by(Job.id).limit(1)
            job = session.scalar(oldest.with_for_update(skip_locked=True))
            if job is None:
                return None
            job.state, job.worker_id, job.lease_until = "running", worker.id, now + LEASE
            job.attempt += 1
            job.fence += 1
            job.started_at = now
            return Claim(job.id, job.attempt, job.fence, job.kind, job.payload)

    def renew(self, claim: Claim) -> bool:
        """Say that the worker is still at it; returns whether somebody wants the job cancelled.

        Raises:
            LeaseLostError: the claim is lost.
        """
        with self.holding(claim) as (_, job):
            job.lease_until = self._clock() + LEASE
            return job.cancel_requested_at is not None

    @contextmanager
    def holding(self, claim: Claim) -> Iterator[tuple[Session, Job]]:
        """A transaction in which the claim is good and stays so: what is published within it, no other worker publishes.

        Raises:
            LeaseLostError: the claim is lost.
        """
        with self._database.writing() as session:
            mine = (Job.id == claim.job_id, Job.fence == claim.fence, Job.state == "running")
            job = session.scalar(select(Job).where(*mine).with_for_update())
            if job is None:
                raise LeaseLostError(f"job {claim.job_id} is no longer this worker's")
            yield session, job

    def begin_stage(self, claim: Claim, name: str, what: str) -> None:
        """A part of the work begins; the one before has ended.

        Raises:
            LeaseLostError: the claim is lost.
        """
        now = self._clock()
        with self.holding(claim) as (session, _):
            own = (Stage.job_id == claim.job_id, Stage.attempt == claim.attempt)
            session.execute(update(Stage).where(*own, Stage.ended_at.is_(None)).values(ended_at=now))
            position = session.scalar(select(func.count()).select_from(Stage).where(*own)) or 0
            session.add(
                Stage(job_id=claim.job_id, attempt=claim.attempt, name=name, position=position, began_at=now, what=what)
            )

    def log(self, claim: Claim, first_number: int, lines: Iterable[str]) -> None:
        """Add lines to the attempt's log, numbered from ``first_number``.

        Raises:
            LeaseLostError: the claim is lost.
        """
        now = self._clock()
        with self.holding(claim) as (session, _):
            session.add_all(
                LogLine(job_id=claim.job_id, attempt=claim.attempt, number=number, at=now, text=line)
                for number, line in enumerate(lines, first_number)
            )

    def end(self, claim: Claim, state: JobState, *, result: dict[str, Any] | None = None, error: str | None = None) -> None:
        """The job has ended.

        Raises:
            LeaseLostError: the claim is lost.
        """
        now = self._clock()
        with self.holding(claim) as (session, job):
            job.state, job.ended_at, job.lease_until, job.result, job.error = state, now, None, result, error
            open_stages = (Stage.job_id == claim.job_id, Stage.attempt == claim.attempt, Stage.ended_at.is_(None))
            session.execute(update(Stage).where(*open_stages).values(ended_at=now))

    def give_up_abandoned(self) -> list[int]:
        """Take jobs from workers that have not been heard of for a lease: back in line, or interrupted. Returns their ids."""
        now = self._clock()
        with self._database.writing() as session:
            abandoned = select(Job).where(Job.state == "running", Job.lease_until < now).order_by(Job.id)
            jobs = session.scalars(abandoned.with_for_update(skip_locked=True)).all()
            for job in jobs:
                job.lease_until = None
                job.fence += 1
                if job.cancel_requested_at is not None:
                    job.state, job.ended_at = "cancelled", now
                elif job.attempt < job.most_attempts:
                    job.state = "queued"
                else:
                    job.state, job.ended_at = "interrupted", now
                    job.error = "its worker went away"
            return [job.id for job in jobs]
