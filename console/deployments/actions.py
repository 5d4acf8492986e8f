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
from ..models import LIVE_JOB_STATES, LIVE_STATES, Deployment, EngineRecord, EngineReplica, Job, Worker
from .job import ask_job
from .settings import DeploymentSecrets, DeploymentSettings
from .telling import tell

__all__ = ["SERVED_TARGET", "ask_deploy", "same_wish", "start_again"]

SERVED_TARGET = "torch"
"""Whose engines workers serve: they run in our own environment, and those of TensorRT-LLM in its."""


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
        ConflictError: the engine is served by another server, no live worker's host has it, or something is served under this
            name there.
        UsageError: the settings want a secret that is not given, or the key was used for another wish.
    """
    actor.require("deploy")
    if (known := asked_before(session, actor, idempotency_key, "deploy")) is not None:
        return same_wish(session, known, settings), known
    _require_secrets(settings, secrets)
    engine = session.get(EngineRecord, settings.engine_id)
    if engine is None:
        raise NotFoundError(f"there is no engine {settings.engine_id}")
    if engine.target != SERVED_TARGET:
        raise ConflictError(
            f"{engine.name} is for {engine.target}, and only engines for {SERVED_TARGET} are served from here",
            hint="`roundhouse export` writes what its own server takes.",
        )
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


def start_again(session: Session, job: Job) -> None:
    """Have a deployment start that did not, as its job is about to be tried again.

    Args:
        session: a writing transaction, which has its turn.
        job: what was to start it; locked.

    Raises:
        ConflictError: it was unloaded or forgotten, or its name is taken.
    """
    row = session.scalar(select(Deployment).where(Deployment.id == job.deployment_id).with_for_update())
    if row is None:
        raise ConflictError(f"deployment {job.subject} ({job.deployment_id}) was forgotten", hint="Start a new one.")
    end = (Job.deployment_id == row.id, Job.kind == "undeploy", Job.state.in_((*LIVE_JOB_STATES, "succeeded")))
    if row.state == "stopping" or session.scalar(select(Job.id).where(*end).limit(1)) is not None:
        was = "is being" if row.state in LIVE_STATES else "was"
        raise ConflictError(f"deployment {row.name} ({row.id}) {was} unloaded", hint="Deploy it again: that starts a new one.")
    if row.state in LIVE_STATES:
        return  # it outlived its worker, or nobody has told yet that it did not start
    _require_free_name(session, row.name, row.host)
    row.endpoints = row.seen_at = None  # of the start before
    tell(row, "starting")


def same_wish(session: Session, job: Job, settings: DeploymentSettings | None) -> Deployment:
    """What somebody got who asks again with the key of a job.

    Args:
        session: where to look.
        job: that was asked for with the key.
        settings: what they ask for; None: nobody knows any more.

    Raises:
        UsageError: the key was used for another wish.
    """
    row = session.get(Deployment, job.deployment_id)
    if row is None or (settings is not None and row.settings != settings.model_dump(mode="json")):
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
