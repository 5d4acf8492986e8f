"""What the home page and ``/api/v1/overview`` show."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ..integrity.records import Verdict
from ..models import DeploymentState, JobKind, JobState

__all__ = ["AttentionItem", "FirstSteps", "HostDisk", "Overview", "ServingRow", "StageOfWork", "WorkRow"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServingRow(_Record):
    """A live deployment."""

    id: str
    name: str
    engine_id: str
    engine_name: str
    host: str
    state: DeploymentState
    silent: bool
    """Whether its host has told nothing for a while: `state` is what was last known."""
    reason: str | None
    """Why it does not answer."""
    tokens_per_s: float | None
    """Generated, over the last seconds; None while that is not known."""
    history: tuple[float | None, ...]
    """The same over the last minutes, from the oldest."""
    running: int | None
    """Requests."""
    waiting: int | None
    pages_taken: int | None
    """What no other request can have now: in use, or quarantined."""
    pages: int | None
    """Of its whole pool."""
    pages_quarantined: int | None
    mismatches: int | None
    """Rows that its page check has stopped."""


class StageOfWork(_Record):
    """A part of a job, as it is now or will be."""

    name: str
    what: str
    state: Literal["done", "running", "waiting"]
    done: float | None
    """Which part of it is done, from 0 to 1, where that is known."""


class WorkRow(_Record):
    """A job that runs or waits."""

    id: int
    kind: JobKind
    state: JobState
    subject: str
    requested_by: str
    created_at: datetime
    started_at: datetime | None
    stages: tuple[StageOfWork, ...]
    """Of its latest attempt, in their order; those of a build that are still to come included."""


class AttentionItem(_Record):
    """Something that somebody should look at."""

    key: str
    """Names it, among all."""
    tone: Literal["bad", "warn"]
    what: str
    detail: str | None
    at: datetime | None
    href: str
    to_do: str
    """What the link is for, in a word or two."""


class HostDisk(_Record):
    """A host with a live worker, and what is left of the disk where its home is."""

    host: str
    free: int
    """Bytes."""
    total: int
    """Bytes."""
    is_short: bool


class FirstSteps(_Record):
    """How far a newcomer is."""

    has_planned: bool
    """A build was asked for, which a plan comes before."""
    has_engine: bool
    has_deployed: bool
    engine_id: str | None
    """The latest engine that a host has."""
    engine_name: str | None
    """What that one is called."""

    @property
    def are_done(self) -> bool:
        """Whether there was ever a deployment."""
        return self.has_deployed


class Overview(_Record):
    """Everything on the home page."""

    first_steps: FirstSteps
    serving: tuple[ServingRow, ...]
    serving_count: int
    """Of all live deployments; the list has the first ones."""
    work: tuple[WorkRow, ...]
    """What runs, then what waits."""
    work_count: int
    attention: tuple[AttentionItem, ...]
    """The latest first."""
    integrity: Verdict
    hosts: tuple[HostDisk, ...]
