"""Asking for the end of deployments, and what is done with those that cannot end, or have ended."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ..access.actor import Actor
from ..access.audit import audit
from ..database.base import utc_now
from ..database.turns import take_turn
from ..errors import ConflictError
from ..jobs import cancel_job
from ..jobs.asking import asked_before
from ..models import LIVE_STATES, AuditEntry, Deployment, Job
from .job import ask_job, lock_deployment, lock_jobs
from .silence import has_worker
from .telling import tell

__all__ = ["ask_undeploy", "forget", "give_up", "unload_cancelled"]

_FORGET = "deployment.forget"


def ask_undeploy(
    session: Session, actor: Actor, deployment_id: str, *, drain_s: float = 5.0, idempotency_key: str | None = None
) -> Job:
    """Ask for a deployment's end; a start that is under way is cancelled. Who asks twice gets the job that is at it,
    and with the same key that job after it has ended, too.

    Args:
        session: a writing transaction.
        actor: who asks.
        deployment_id: which.
        drain_s: how long running requests may go on, in seconds, up to 600.
        idempotency_key: the same for the same wish.

    Raises:
        ForbiddenError: this actor may not deploy.
        NotFoundError: there is no such deployment.
        ConflictError: it has ended.
        UsageError: the time is out of range, or the key was used for another wish.
    """
    actor.require("deploy")
    if not 0 <= drain_s <= 600:
        raise UsageError("running requests may go on for 0 to 600 seconds")
    payload = {"deployment_id": deployment_id, "drain_s": drain_s}
    if (known := asked_before(session, actor, idempotency_key, "undeploy", payload)) is not None:
        return known
    jobs = lock_jobs(session, deployment_id)
    row = lock_deployment(session, deployment_id)
    if (at_it := next((job for job in jobs if job.kind == "undeploy"), None)) is not None:
        return at_it
    if row.state not in LIVE_STATES:
        raise ConflictError(f"deployment {row.name} ({row.id}) has ended: {row.state}")
    for job in jobs:
        cancel_job(job)
    tell(row, "stopping")
    return ask_job(session, actor, row, "undeploy", idempotency_key, "deployment.stop", payload=payload)


def unload_cancelled(session: Session, job: Job) -> None:
    """A job that was to stop a deployment was cancelled before anybody took it: the deployment is as it was before.

    What that was, its host knows best, and soon tells.
    """
    starting = any(each.kind == "deploy" for each in lock_jobs(session, job.deployment_id or ""))
    row = session.scalar(select(Deployment).where(Deployment.id == job.deployment_id).with_for_update())
    if row is None or row.state != "stopping":
        return
    if row.endpoints is not None:
        tell(row, "unready", reason="its unloading was cancelled, and its host has not told since how it is")
    elif row.seen_at is not None or starting:
        tell(row, "starting")
    else:
        tell(row, "stopped", reason="its start was cancelled")


def give_up(session: Session, actor: Actor, deployment_id: str) -> None:
    """Count a deployment as dead that nobody can stop, as no worker of its host and home is alive. Its jobs are cancelled.

    If it still runs there, the next worker of that home tells of it again. Asked again, it changes nothing.

    Raises:
        ForbiddenError: this actor may not deploy.
        NotFoundError: there is no such deployment.
        ConflictError: a worker there is alive, so that it can be unloaded.
    """
    actor.require("deploy")
    take_turn(session)
    jobs = lock_jobs(session, deployment_id)
    row = lock_deployment(session, deployment_id)
    if row.state not in LIVE_STATES:
        return
    if session.scalar(select(Deployment.id).where(Deployment.id == row.id, has_worker(utc_now()))) is not None:
        raise ConflictError(f"a worker of {row.host} is alive, which can stop {row.name} ({row.id})", hint="Unload it.")
    for job in jobs:
        cancel_job(job)
    audit(session, actor, "deployment.give-up", "deployment", row.id, name=row.name, host=row.host, state=row.state)
    why = f"given up by {actor.name}: no worker of {row.host} was alive to stop it"
    tell(row, "dead", reason=why, hint="If it still runs there, the next worker of its home tells of it again.")


def forget(session: Session, actor: Actor, deployment_id: str) -> None:
    """Remove a deployment that has ended from the lists, with its log. Its integrity events stay.

    Asked again, it changes nothing.

    Raises:
        ForbiddenError: this actor may not deploy.
        NotFoundError: there was no such deployment.
        ConflictError: it has not ended.
    """
    actor.require("deploy")
    take_turn(session)
    if session.get(Deployment, deployment_id) is None and _was_forgotten(session, deployment_id):
        return
    row = lock_deployment(session, deployment_id)
    if row.state in LIVE_STATES:
        raise ConflictError(f"deployment {row.name} ({row.id}) is {row.state}", hint="Stop it first.")
    session.delete(row)
    audit(session, actor, _FORGET, "deployment", row.id, name=row.name)


def _was_forgotten(session: Session, deployment_id: str) -> bool:
    of_it = (AuditEntry.subject_kind == "deployment", AuditEntry.subject == deployment_id, AuditEntry.action == _FORGET)
    return session.scalar(select(AuditEntry.id).where(*of_it).limit(1)) is not None
