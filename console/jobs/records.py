"""What pages and the API show of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from ..models import LIVE_JOB_STATES, JobKind, JobState

__all__ = ["AttemptRow", "JobAnswer", "JobDetail", "JobFilter", "JobRow", "LogAnswer", "LogRow", "StageRow"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class JobFilter(_Record):
    """Which jobs are listed: those that are all of this."""

    kinds: tuple[JobKind, ...] = ()
    """One of these; empty: any."""
    states: tuple[JobState, ...] = ()
    """One of these; empty: any."""
    requested_by: str | None = None
    """Whoever asked for it."""
    engine_id: str | None = None
    deployment_id: str | None = None
    text: str | None = None
    """Part of what it is about or of who asked for it, in any case; or its number."""


class StageRow(_Record):
    """A part of an attempt."""

    name: str
    what: str
    began_at: datetime
    ended_at: datetime | None
    result: str | None = None
    """What came of it, in words."""
    done: float | None
    """Which part of it is done, from 0 to 1, where that is known."""


class AttemptRow(_Record):
    """One time that a worker took the job."""

    number: int
    began_at: datetime | None
    """When it first told anything; None where it never did."""
    lines: int
    """Of its log."""


class JobRow(_Record):
    """A job in a list."""

    id: int
    kind: JobKind
    state: JobState
    subject: str
    engine_id: str | None
    deployment_id: str | None
    target: str | None
    host: str | None
    home: str | None
    requested_by: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    attempt: int
    most_attempts: int
    cancel_requested_at: datetime | None
    error: str | None
    worker_id: str | None
    stage: StageRow | None
    """What it did last, in its latest attempt."""

    @property
    def is_live(self) -> bool:
        """Whether it waits or runs, and so may be cancelled."""
        return self.state in LIVE_JOB_STATES


class JobDetail(JobRow):
    """A job on its own page."""

    payload: dict[str, Any]
    result: dict[str, Any] | None
    hint: str | None
    worker_host: str | None
    stages: tuple[StageRow, ...]
    """Of its latest attempt, in the order in which they began."""
    attempts: tuple[AttemptRow, ...]
    lost_secrets: bool = False
    """Whether it needed an API key, which was deleted when it ended: it cannot be tried again."""


class LogRow(_Record):
    """A line of a log."""

    number: int
    """From 1."""
    at: datetime
    text: str


class JobAnswer(_Record):
    """A job, and why it waits."""

    job: JobDetail
    waiting: str | None
    """Why no worker has taken it, where that is known."""


class LogAnswer(_Record):
    """A part of a log."""

    attempt: int
    lines: tuple[LogRow, ...]
    """Ask again with `after` the last one's number, until the job has ended and none comes."""
