"""What workers do with jobs: take one, keep it, report, and end it or give it back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session, aliased

from ..database.base import utc_now
from ..database.database import Database
from ..models import Deployment, Job, JobKind, JobState, Worker
from . import journal
from .claim import LEASE, Claim, LeaseLostError
from .ending import end_job

__all__ = ["Worklist"]


class Worklist:
    """The jobs as workers see them.

    Args:
        database: where they are.
        clock: this moment, the same for all hosts: they would take each other's jobs otherwise.
        lease: how long a worker has a job without being heard of.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now, lease: timedelta = LEASE) -> None:
        self._database = database
        self._clock = clock
        self._lease = lease

    def claim(self, worker: Worker, kinds: Collection[JobKind] | None = None) -> Claim | None:
        """Take the oldest job that this worker can run; no other worker gets it.

        One about a deployment waits until no other job is at it: a start that is cancelled ends before the unload begins.

        Args:
            worker: who takes it.
            kinds: only one of these kinds; None: any.
        """
        now = self._clock()
        other = aliased(Job)
        at_it = select(other.id).where(other.deployment_id == Job.deployment_id, other.state == "running").exists()
        can_run = [
            ~at_it,
            or_(Job.target.is_(None), Job.target.in_(worker.targets)),
            or_(Job.host.is_(None), Job.host == worker.host),
            or_(Job.home.is_(None), Job.home == worker.home),
        ]
        if kinds is not None:
            can_run.append(Job.kind.in_(kinds))
        with self._database.writing() as session:
            # On SQLite the whole transaction is alone; elsewhere rows that others are just taking are passed over.
            oldest = select(Job).where(Job.state == "queued", *can_run).order_by(Job.id).limit(1)
            job = session.scalar(oldest.with_for_update(skip_locked=True))
            if job is None or not _is_alone(session, job):
                return None
            job.state, job.worker_id, job.lease_until = "running", worker.id, now + self._lease
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
            job.lease_until = self._clock() + self._lease
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
        with self.holding(claim) as (session, _):
            journal.begin_stage(session, claim, name, what, self._clock())

    def log(self, claim: Claim, first_number: int, lines: Iterable[str]) -> None:
        """Add lines to the attempt's log, numbered from ``first_number``.

        Raises:
            LeaseLostError: the claim is lost.
        """
        with self.holding(claim) as (session, _):
            journal.add_lines(session, claim, first_number, lines, self._clock())

    def end(
        self,
        claim: Claim,
        state: JobState,
        *,
        result: dict[str, Any] | None = None,
        error: str | None = None,
        hint: str | None = None,
    ) -> None:
        """The job has ended.

        Raises:
            LeaseLostError: the claim is lost.
        """
        now = self._clock()
        with self.holding(claim) as (session, job):
            end_job(job, state, now)
            job.result, job.error, job.hint = result, error, hint
            journal.end_stages(session, claim, now)

    def give_back(self, claim: Claim) -> None:
        """The worker is ended before the job is: back in line, however often that happens. Only deaths use attempts up.

        Raises:
            LeaseLostError: the claim is lost.
        """
        with self.holding(claim) as (session, job):
            job.most_attempts += 1
            self._let_go(session, job, "its worker was ended")

    def give_up_abandoned(self) -> list[int]:
        """Take jobs from workers that have not been heard of for a lease: back in line, or interrupted. Returns their ids."""
        with self._database.writing() as session:
            abandoned = select(Job).where(Job.state == "running", Job.lease_until < self._clock()).order_by(Job.id)
            jobs = session.scalars(abandoned.with_for_update(skip_locked=True)).all()
            for job in jobs:
                self._let_go(session, job, "its worker went away")
            return [job.id for job in jobs]

    def _let_go(self, session: Session, job: Job, why: str) -> None:
        """Nobody has it any more, and whoever still thinks so is told otherwise."""
        now = self._clock()
        journal.end_stages(session, Claim(job.id, job.attempt, job.fence, job.kind, job.payload), now)
        job.lease_until = None
        job.fence += 1
        if job.cancel_requested_at is not None:
            end_job(job, "cancelled", now)
        elif job.attempt < job.most_attempts:
            job.state = "queued"
        else:
            end_job(job, "interrupted", now)
            job.error = why
            job.hint = "It can be tried again." if job.sealed is None else "Its API key is deleted; ask for the same anew."


def _is_alone(session: Session, job: Job) -> bool:
    """Whether no other job is at its deployment, and none becomes so before this transaction ends.

    On PostgreSQL another lane may be taking another job of it just now, which neither sees: they meet at the deployment.
    """
    if job.deployment_id is None:
        return True
    session.execute(select(Deployment.id).where(Deployment.id == job.deployment_id).with_for_update())
    at_it = select(Job.id).where(Job.deployment_id == job.deployment_id, Job.state == "running").limit(1)
    return session.scalar(at_it) is None
