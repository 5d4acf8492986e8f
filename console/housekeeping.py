"""Forgets what nobody will look for any more: old logs of jobs, as the settings say, logins that are over, secrets of jobs that
ended, samples of deployments whose hosts are gone, and workers that did nothing that is still known.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import delete, select, tuple_
from sqlalchemy.orm import Session

from .access.logins import Logins
from .database.base import utc_now
from .database.database import Database
from .jobs.ending import forget_secrets
from .models import DeploymentSample, Job, LogLine, Worker
from .settings_table import read_settings

__all__ = ["Housekeeping"]

_log = logging.getLogger(__name__)
_EVERY_S = 3600.0
_SAMPLES_FOR = timedelta(hours=1)
"""Hosts remove their own after a quarter of an hour."""
_WORKERS_FOR = timedelta(days=30)
_JOBS_AT_ONCE, _LINES_AT_ONCE = 50, 20_000
"""So many lines at most, of so many jobs, go in one transaction: who writes meanwhile waits no longer than that takes."""


class Housekeeping:
    """Done by each console now and then; two of them do no harm.

    Args:
        database: where to forget.
        clock: seconds, monotonic.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._next = clock()

    def when_due(self) -> None:
        """Do a part of it, once an hour, and go on at once while there is more; to be called again and again."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + _EVERY_S
        try:
            if self._forget_some():
                self._next = self._clock()
        except Exception:  # whatever it is, the console goes on without it, and the next time will do
            _log.exception("what is old could not be removed; it is tried again in an hour")

    def _forget_some(self) -> bool:
        """Returns whether there may be more."""
        with self._database.reading() as session:
            days = read_settings(session).job_log_days
            jobs = []
            if days is not None:
                has_log = select(LogLine.job_id).where(LogLine.job_id == Job.id).exists()
                old = select(Job.id).where(Job.ended_at < utc_now() - timedelta(days=days), has_log).order_by(Job.id)
                jobs = list(session.scalars(old.limit(_JOBS_AT_ONCE)))
        with self._database.writing() as session:
            Logins().forget_old(session)
            forget_secrets(session)
            _forget_samples_and_workers(session)
            lines = _forget_lines(session, jobs) if jobs else 0
        return len(jobs) == _JOBS_AT_ONCE or lines == _LINES_AT_ONCE


def _forget_lines(session: Session, jobs: list[int]) -> int:
    """Returns how many."""
    key = (LogLine.job_id, LogLine.attempt, LogLine.number)
    some = select(*key).where(LogLine.job_id.in_(jobs)).limit(_LINES_AT_ONCE)
    return session.connection().execute(delete(LogLine).where(tuple_(*key).in_(some))).rowcount


def _forget_samples_and_workers(session: Session) -> None:
    now = utc_now()
    session.execute(delete(DeploymentSample).where(DeploymentSample.at < now - _SAMPLES_FOR))
    has_job = select(Job.id).where(Job.worker_id == Worker.id).exists()
    session.execute(delete(Worker).where(Worker.seen_at < now - _WORKERS_FOR, ~has_job))
