"""How jobs end, in whatever way: what nobody needs any more is forgotten at once."""

from __future__ import annotations

from datetime import datetime

from ..models import Job, JobState

__all__ = ["FORGOTTEN", "end_job"]

FORGOTTEN = ""
"""In place of the secrets of a job that had some, once it has ended: it cannot be done again without them."""


def end_job(job: Job, state: JobState, at: datetime) -> None:
    """The job is over: it has no worker any more, and its secrets are gone."""
    job.state, job.ended_at, job.lease_until = state, at, None
    if job.sealed is not None:
        job.sealed = FORGOTTEN
