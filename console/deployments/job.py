"""A deployment's jobs: asked for, and found to be changed together with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..access.actor import Actor
from ..errors import NotFoundError
from ..jobs import NewJob
from ..jobs.asking import ask_for
from ..models import LIVE_JOB_STATES, Deployment, Job

__all__ = ["ask_job", "lock_deployment", "lock_jobs"]


def ask_job(
    session: Session,
    actor: Actor,
    row: Deployment,
    kind: Literal["deploy", "undeploy"],
    key: str | None,
    action: str,
    *,
    payload: dict[str, Any] | None = None,
    **detail: Any,
) -> Job:
    """Enqueue a job about a deployment, for its host, and audit it.

    Args:
        session: a writing transaction.
        actor: who asks.
        row: about which.
        kind: what is to be done.
        key: the same for the same wish.
        action: for the audit log.
        payload: of the job; None: the deployment's id alone.
        detail: for the audit log.

    Raises:
        UsageError: the key was used for another request.
    """
    new = NewJob(
        kind=kind,
        subject=row.name,
        payload=payload or {"deployment_id": row.id},
        requested_by=actor.name,
        idempotency_key=key,
        engine_id=row.engine_id,
        deployment_id=row.id,
        host=row.host,
        home=row.home,
        most_attempts=2 if kind == "undeploy" else 1,
    )
    return ask_for(session, actor, new, action=action, subject_kind="deployment", subject=row.id, name=row.name, **detail)


def lock_jobs(session: Session, deployment_id: str) -> Sequence[Job]:
    """The jobs of a deployment that wait or run, the oldest first, to be changed.

    Workers lock their job first and its deployment then: who locks both does it in this order.
    """
    at_it = select(Job).where(Job.deployment_id == deployment_id, Job.state.in_(LIVE_JOB_STATES))
    return session.scalars(at_it.order_by(Job.id).with_for_update()).all()


def lock_deployment(session: Session, deployment_id: str) -> Deployment:
    """A deployment, to be changed.

    Raises:
        NotFoundError: there is no such deployment.
    """
    row = session.scalar(select(Deployment).where(Deployment.id == deployment_id).with_for_update())
    if row is None:
        raise NotFoundError(f"there is no deployment {deployment_id}")
    return row
