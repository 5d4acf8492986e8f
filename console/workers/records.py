"""What pages and the API show of workers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from ..models import JobKind, JobState

__all__ = ["WorkerDetail", "WorkerFilter", "WorkerJob", "WorkerRow", "WorkerState", "disk_is_short"]

WorkerState = Literal["alive", "gone", "ended"]
"""``gone``: it was not heard of for a while, and did not say that it ends."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkerFilter(_Record):
    """Which workers are listed: those that are all of this."""

    state: WorkerState | None = None
    host: str | None = None


class WorkerJob(_Record):
    """A job that a worker has, or had."""

    id: int
    kind: JobKind
    state: JobState
    subject: str
    started_at: datetime | None
    ended_at: datetime | None


def disk_is_short(free: int, total: int) -> bool:
    """Whether the next engine may not fit: less than 50 GiB, or than a tenth of a small disk. In bytes."""
    return free < min(50 * 2**30, total // 10)


class WorkerRow(_Record):
    """A worker: one process, from its start to its end."""

    id: str
    host: str
    pid: int
    home: str
    state: WorkerState
    hardware: dict[str, Any]
    versions: dict[str, str]
    targets: tuple[str, ...]
    disk_free: int
    """Bytes where its home is."""
    disk_total: int
    started_at: datetime
    seen_at: datetime
    """Its last heartbeat."""
    ended_at: datetime | None
    jobs: tuple[WorkerJob, ...]
    """Those that it has."""

    @computed_field  # type: ignore[prop-decorator]  # mypy does not know it
    @property
    def disk_is_short(self) -> bool:
        """Whether the next engine may not fit."""
        return disk_is_short(self.disk_free, self.disk_total)


class WorkerDetail(WorkerRow):
    """A worker on its own page."""

    had: tuple[WorkerJob, ...]
    """The latest of those that it took last and that have ended."""
