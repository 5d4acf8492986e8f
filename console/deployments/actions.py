"""Asking for deployments."""

from __future__ import annotations

import secrets as random

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ..access.actor import Actor
from ..access.sealing import Sealer
from ..database.base import utc_now
from ..errors import ConflictError, NotFoundError
from ..jobs.asking import asked_before
from ..jobs.liveness import is_alive
from ..models import LIVE_STATES, Deployment, EngineRecord, EngineReplica, Job, Worker
from .job import ask_job
from .settings import DeploymentSecrets, DeploymentSettings

__all__ = ["ask_deploy"]


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
    if (known := asked_before(session, actor, idempotency_key, "deploy")) is not None:
        return _same_wish(session, known, settings), known
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
    return row, ask_job(session, actor, row, "deploy", idempotency_key, "deployment.start", engine=engine.id, host=row.host)


def _same_wish(session: Session, job: Job, settings: DeploymentSettings) -> Deployment:
    row = session.get(Deployment, job.deployment_id)
    if row is None or row.settings != settings.model_dump(mode="json"):
        raise UsageError(f"the key {job.idempotency_key!r} was used for another request (job {job.id})")
    return row


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
