"""A job as it goes on, told in the events that a build tells."""

from __future__ import annotations

import time
from collections.abc import Callable

from roundhouse.build.events import OnEvent, StageFinished, StageProgress, StageStarted
from roundhouse.errors import RoundhouseError

from ..database.database import Database
from .queries import job_detail
from .records import JobDetail, StageRow

__all__ = ["JobEndedError", "StageTeller", "follow"]

_POLL_S = 0.3
_PARTS = 1000
"""Of a stage, in which its progress is told."""


class JobEndedError(RoundhouseError):
    """A job did not come to its good end."""


class StageTeller:
    """Turns looks at a job into events: each stage begins once, goes on, and ends once.

    Args:
        on_event: gets them.
    """

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._attempt = 0
        self._begun: set[str] = set()
        self._ended: set[str] = set()

    def look(self, job: JobDetail) -> None:
        """Tell what is new. A new attempt begins anew."""
        if job.attempt != self._attempt:
            self._attempt, self._begun, self._ended = job.attempt, set(), set()
        for stage in job.stages:
            self._tell(stage)

    def _tell(self, stage: StageRow) -> None:
        if stage.name not in self._begun:
            self._begun.add(stage.name)
            self._on_event(StageStarted(stage.name, stage.what))
        if stage.name in self._ended:
            return
        if stage.ended_at is not None:
            self._ended.add(stage.name)
            self._on_event(StageFinished(stage.name, (stage.ended_at - stage.began_at).total_seconds(), stage.result or ""))
        elif stage.done is not None:
            self._on_event(StageProgress(stage.name, round(stage.done * _PARTS), _PARTS))


def follow(database: Database, job_id: int, on_event: OnEvent, meanwhile: Callable[[], None]) -> JobDetail:
    """Wait for a job's end, telling how it goes on.

    Args:
        database: where it is.
        job_id: which.
        on_event: gets its stages.
        meanwhile: called again and again.

    Returns:
        The job, which has succeeded.

    Raises:
        JobEndedError: it failed, was cancelled or was interrupted; with the reason.
    """
    teller = StageTeller(on_event)
    while True:
        with database.reading() as session:
            job = job_detail(session, job_id)
        teller.look(job)
        if not job.is_live:
            break
        meanwhile()
        time.sleep(_POLL_S)
    if job.state != "succeeded":
        raise JobEndedError(f"job {job.id} ({job.kind} {job.subject}) is {job.state}" + _why(job), hint=job.hint)
    return job


def _why(job: JobDetail) -> str:
    return f": {job.error}" if job.error else ""
