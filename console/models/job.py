"""Jobs: long work that is done by a worker, once, whatever happens to console and worker meanwhile."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.orm import Mapped, mapped_column

from ..database.base import Base

__all__ = ["LIVE_JOB_STATES", "Job", "JobKind", "JobState", "LogLine", "Stage"]

JobKind = Literal["build", "verify", "remove", "deploy", "undeploy", "drill", "benchmark", "evaluate"]
JobState = Literal["queued", "running", "succeeded", "failed", "cancelled", "interrupted"]
"""``interrupted``: its worker went away, and it may not be tried again."""
LIVE_JOB_STATES: tuple[JobState, ...] = ("queued", "running")
"""While it may still do something."""


def _sought(inserted: DefaultExecutionContext) -> str:
    given = inserted.get_current_parameters()  # type: ignore[no-untyped-call]
    return f"{given['subject']}\n{given['requested_by']}".lower()


class Job(Base):
    """One piece of work."""

    __tablename__ = "job"
    __table_args__ = (
        CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'interrupted')", name="state"),
        CheckConstraint("(state = 'running') = (lease_until IS NOT NULL)", name="lease"),
        UniqueConstraint("requested_by", "idempotency_key", name="uq_job_idempotency_key"),
        Index("ix_job_state_id", "state", "id"),
        Index("ix_job_kind_id", "kind", "id"),
        Index("ix_job_kind_state", "kind", "state"),
        Index("ix_job_kind_sought", "kind", "sought"),
        Index("ix_job_worker_id_id", "worker_id", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    state: Mapped[str]
    subject: Mapped[str]
    """What it is about, in words: an engine's name, a model."""
    payload: Mapped[dict[str, Any]]
    """What to do, as its kind writes it down."""
    sealed: Mapped[str | None]
    """Secrets that it needs, encrypted: nobody sees them in the payload. Empty once it has ended."""
    engine_id: Mapped[str | None] = mapped_column(index=True)
    """The engine that it is about, or that it made."""
    deployment_id: Mapped[str | None] = mapped_column(index=True)
    target: Mapped[str | None]
    """Only a worker with this target can do it."""
    host: Mapped[str | None]
    """Only a worker on this host can do it."""
    home: Mapped[str | None]
    """Only a worker with this home can do it."""
    requested_by: Mapped[str]
    sought: Mapped[str] = mapped_column(default=_sought)
    """What a search looks through, in an index of its own: subject and who asked, in small letters."""
    idempotency_key: Mapped[str | None]
    """Who asks twice with the same key gets the same job."""
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    """Of the latest attempt."""
    ended_at: Mapped[datetime | None]
    attempt: Mapped[int] = mapped_column(default=0)
    """How often a worker took it."""
    most_attempts: Mapped[int] = mapped_column(default=1)
    """One more for each time that a worker gave it back."""
    worker_id: Mapped[str | None] = mapped_column(ForeignKey("worker.id"))
    fence: Mapped[int] = mapped_column(default=0)
    """Grows each time a worker takes it: only the latest may report, and publish what it made."""
    lease_until: Mapped[datetime | None]
    """When it counts as abandoned, unless its worker is heard of before."""
    cancel_requested_at: Mapped[datetime | None]
    result: Mapped[dict[str, Any] | None]
    error: Mapped[str | None]
    hint: Mapped[str | None]


class Stage(Base):
    """A part of an attempt, as the work names it."""

    __tablename__ = "job_stage"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int]
    """From 0, in the order in which they began."""
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    what: Mapped[str]
    """What it is doing, in words."""
    result: Mapped[str | None]
    """What came of it, in words; None while it runs, and where there is nothing to say."""
    done: Mapped[float | None]
    """Which part of it is done, from 0 to 1, where that is known."""


class LogLine(Base):
    """A line of an attempt's log."""

    __tablename__ = "job_log"

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    """From 1."""
    at: Mapped[datetime]
    text: Mapped[str]
