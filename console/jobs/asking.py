"""A job that somebody asks for, written into the audit log once, however often they ask with one key."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..access.actor import Actor
from ..access.audit import audit
from ..database.turns import take_turn
from ..models import Job
from .requests import NewJob, enqueue

__all__ = ["ask_for"]


def ask_for(session: Session, actor: Actor, new: NewJob, *, action: str, subject_kind: str, subject: str, **detail: Any) -> Job:
    """Enqueue a job as its ``requested_by`` asks for it, and audit it unless it is there already.

    Args:
        session: a writing transaction.
        actor: who asks; ``new.requested_by`` is their name.
        new: the job.
        action: for the audit log, as the rest is.
        subject_kind: of what.
        subject: its id.
        detail: what else should be remembered.

    Raises:
        UsageError: the key was used for another request.
    """
    take_turn(session)
    same = (Job.requested_by == new.requested_by, Job.idempotency_key == new.idempotency_key)
    known = new.idempotency_key is not None and session.scalar(select(Job.id).where(*same)) is not None
    job = enqueue(session, new)
    if not known:
        audit(session, actor, action, subject_kind, subject, job=job.id, **detail)
    return job
