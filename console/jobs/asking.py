"""A job that somebody asks for, written into the audit log once, however often they ask with one key."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ..access.actor import Actor
from ..access.audit import audit
from ..database.turns import take_turn
from ..models import Job, JobKind
from .requests import NewJob, enqueue

__all__ = ["ask_for", "asked_before"]


def asked_before(
    session: Session, actor: Actor, key: str | None, kind: JobKind, payload: dict[str, Any] | None = None
) -> Job | None:
    """The job that somebody got for a key; to be looked for first, as what was asked for then may not be possible any more.

    Args:
        session: a writing transaction, which waits here for its turn.
        actor: who asks.
        key: which they draw anew for each wish; None: they do not.
        kind: of the job that they ask for.
        payload: of that job; None: whoever asks compares it.

    Raises:
        UsageError: the key was used for another request.
    """
    take_turn(session)
    if key is None:
        return None
    job = session.scalar(select(Job).where(Job.requested_by == actor.name, Job.idempotency_key == key))
    if job is not None and (job.kind != kind or payload not in (None, job.payload)):
        raise UsageError(f"the key {key!r} was used for another request (job {job.id})")
    return job


def ask_for(
    session: Session,
    actor: Actor,
    new: NewJob,
    *,
    action: str,
    subject_kind: str = "job",
    subject: str | None = None,
    **detail: Any,
) -> Job:
    """Enqueue a job as its ``requested_by`` asks for it, and audit it unless it is there already.

    Args:
        session: a writing transaction.
        actor: who asks; ``new.requested_by`` is their name.
        new: the job.
        action: for the audit log, as the rest is.
        subject_kind: of what.
        subject: its id; None: the job's own.
        detail: what else should be remembered.

    Raises:
        UsageError: the key was used for another request.
    """
    if (known := asked_before(session, actor, new.idempotency_key, new.kind, new.payload)) is not None:
        return known
    job = enqueue(session, new)
    audit(session, actor, action, subject_kind, subject or str(job.id), job=job.id, **detail)
    return job
