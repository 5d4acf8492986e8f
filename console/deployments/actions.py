"""Asking for deployments, for their end, and for forgetting those that have ended."""

from __future__ import annotations

import secrets as random
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ..access.actor import Actor
from ..access.audit import audit
from ..access.sealing import Sealer
from ..database.base import utc_now
from ..database.turns import take_turn
from ..errors import ConflictError, NotFoundError
from ..jobs import NewJob, cancel_job, enqueue
from ..jobs.liveness import is_alive
from ..models import LIVE_STATES, Deployment, EngineRecord, EngineReplica, Job, Worker
from .settings import DeploymentSecrets, DeploymentSettings
from .telling import tell

__all__ = ["ask_deploy", "ask_undeploy", "forget"]


def ask_deploy(
    session: Session,
    actor: Actor,
    settings: DeploymentSettings,
    secrets: DeploymentSecrets,
    sealer: Sealer,
    *,
    on_host: str | None = None,
    idempotency_key: str | None = None,
) -> tuple[Deployment, Job]:
    """Ask for a deployment. Who asks again with the same key gets the one that is there.

    Args:
        session: a writing transaction.
        actor: who asks.
        settings: what it is to be.
        secrets: its API key and the like.
        sealer: encrypts them.
        on_host: where; None takes a host that has the engine and a live worker.
        idempotency_key: the same for the same wish.

    Raises:
        ForbiddenError: this actor may not deploy.
        NotFoundError: there is no such engine.
        ConflictError: no live worker's host has the engine, or something is served under this name there.
        UsageError: the settings want a secret that is not given, or the key was used for another wish.
    """
    actor.require("deploy")
    take_turn(session)
    if (there := _asked_before(session, actor, settings, idempotency_key)) is not None:
        return there
    _require_secrets(settings, secrets)
    engine = session.get(EngineRecord, settings.engine_id)
    if engine is None:
        raise NotFoundError(f"there is no engine {settings.engine_id}")
    replica = _place(session, engine, on_host)
    _require_free_name(session, settings.name, replica.host)
    now = utc_now()
    given = secrets.in_clear()
    row = Deployment(
        id=random.token_hex(4),
        name=settings.name,
        engine_id=engine.id,
        kind=settings.kind,
        host=replica.host,
        home=replica.home,
        settings=settings.model_dump(mode="json"),
        sealed=sealer.seal(given) if given else None,
        state="starting",
        created_by=actor.name,
        created_at=now,
        changed_at=now,
    )
    session.add(row)
    session.flush()
    job = _enqueue(session, actor, row, "deploy", {"deployment_id": row.id}, idempotency_key)
    audit(session, actor, "deployment.start", "deployment", row.id, name=row.name, engine=engine.id, host=row.host)
    return row, job


def ask_undeploy(
    session: Session, actor: Actor, deployment_id: str, *, drain_s: float = 5.0, idempotency_key: str | None = None
) -> Job:
    """Ask for a deployment's end; a start that is under way is cancelled. Who asks twice gets the job that is at it.

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
        UsageError: the time is out of range.
    """
    actor.require("deploy")
    if not 0 <= drain_s <= 600:
        raise UsageError("running requests may go on for 0 to 600 seconds")
    take_turn(session)
    row = _find(session, deployment_id)
    jobs = session.scalars(
        select(Job).where(Job.deployment_id == row.id, Job.state.in_(("queued", "running"))).order_by(Job.id)
    ).all()
    if (at_it := next((job for job in jobs if job.kind == "undeploy"), None)) is not None:
        return at_it
    if row.state not in LIVE_STATES:
        raise ConflictError(f"deployment {row.name} ({row.id}) has ended: {row.state}")
    for job in jobs:
        cancel_job(job)
    tell(row, "stopping")
    job = _enqueue(session, actor, row, "undeploy", {"deployment_id": row.id, "drain_s": drain_s}, idempotency_key)
    audit(session, actor, "deployment.stop", "deployment", row.id, name=row.name)
    return job


def forget(session: Session, actor: Actor, deployment_id: str) -> None:
    """Remove a deployment that has ended from the lists, with its log. Its integrity events stay.

    Raises:
        ForbiddenError: this actor may not deploy.
        NotFoundError: there is no such deployment.
        ConflictError: it has not ended.
    """
    actor.require("deploy")
    row = _find(session, deployment_id)
    if row.state in LIVE_STATES:
        raise ConflictError(f"deployment {row.name} ({row.id}) is {row.state}", hint="Stop it first.")
    session.delete(row)
    audit(session, actor, "deployment.forget", "deployment", row.id, name=row.name)


def _asked_before(
    session: Session, actor: Actor, settings: DeploymentSettings, key: str | None
) -> tuple[Deployment, Job] | None:
    if key is None:
        return None
    job = session.scalar(select(Job).where(Job.requested_by == actor.name, Job.idempotency_key == key))
    if job is None:
        return None
    row = session.get(Deployment, job.deployment_id) if job.kind == "deploy" else None
    if row is None or row.settings != settings.model_dump(mode="json"):
        raise UsageError(f"the key {key!r} was used for another request (job {job.id})")
    return row, job


def _require_secrets(settings: DeploymentSettings, secrets: DeploymentSecrets) -> None:
    given = secrets.in_clear()
    if settings.keyed != ("api_key" in given):
        raise UsageError("there is no API key to ask for" if settings.keyed else "an API key is given that nobody is asked for")
    for secret in given.values():
        if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
            raise UsageError("an API key or control value is visible ASCII, without spaces")
    if (settings.control_header is not None) != ("control_value" in given):
        raise UsageError("the control header needs a name and a value")


def _place(session: Session, engine: EngineRecord, host: str | None) -> EngineReplica:
    """Where it is to run: where the engine lies and a worker is alive; the host with the most free disk of several."""
    same = (Worker.host == EngineReplica.host) & (Worker.home == EngineReplica.home)
    here = (EngineReplica.engine_id == engine.id, EngineReplica.state == "present")
    wanted = (
        select(EngineReplica).join(Worker, same).where(is_alive(utc_now()), *here).order_by(Worker.disk_free.desc()).limit(1)
    )
    found = session.scalar(wanted if host is None else wanted.where(EngineReplica.host == host))
    if found is None:
        where = "no host with a live worker has" if host is None else f"host {host} has no live worker, or not"
        raise ConflictError(
            f"{where} engine {engine.name} ({engine.id})",
            hint="Start `roundhouse worker` on a host that has the engine, or build it there.",
        )
    return found


def _require_free_name(session: Session, name: str, host: str) -> None:
    taken = (Deployment.name == name, Deployment.host == host, Deployment.state.in_(LIVE_STATES))
    other = session.scalar(select(Deployment.id).where(*taken).limit(1))
    if other is not None:
        raise ConflictError(f"{name} is served on {host} already, by deployment {other}", hint="Stop it, or take another name.")


def _enqueue(session: Session, actor: Actor, row: Deployment, kind: Any, payload: dict[str, Any], key: str | None) -> Job:
    new = NewJob(
        kind=kind,
        subject=row.name,
        payload=payload,
        requested_by=actor.name,
        idempotency_key=key,
        engine_id=row.engine_id,
        deployment_id=row.id,
        host=row.host,
        home=row.home,
        most_attempts=2 if kind == "undeploy" else 1,
    )
    return enqueue(session, new)


def _find(session: Session, deployment_id: str) -> Deployment:
    row = session.scalar(select(Deployment).where(Deployment.id == deployment_id).with_for_update())
    if row is None:
        raise NotFoundError(f"there is no deployment {deployment_id}")
    return row
