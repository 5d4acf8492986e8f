"""How jobs end, in whatever way: what nobody needs any more is forgotten at once."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update
from sqlalchemy.orm import Session

from ..models import LIVE_JOB_STATES, Job, JobState

__all__ = ["FORGOTTEN", "end_job", "forget_secrets"]

FORGOTTEN = ""
"""In place of the secrets of a job that had some, once it has ended: it cannot be done again without them."""


def end_job(job: Job, state: JobState, at: datetime) -> None:
    """The job is over: it has no worker any more, and its secrets are gone."""
    job.state, job.ended_at, job.lease_until = state, at, None
    if job.sealed is not None:
        job.sealed = FORGOTTEN


def forget_secrets(session: Session) -> None:
    """Forget the secrets of jobs that ended under a version that kept them."""
    kept = (Job.state.not_in(LIVE_JOB_STATES), Job.sealed.is_not(None), Job.sealed != FORGOTTEN)
    session.execute(update(Job).where(*kept).values(sealed=FORGOTTEN))
