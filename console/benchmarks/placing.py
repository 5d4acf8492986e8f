"""Where something is measured: an engine where it lies, a deployment where it runs, an endpoint from any worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from roundhouse.errors import UsageError
from roundhouse.serve.settings import Overrides

from ..access.actor import Actor
from ..access.sealing import Sealer
from ..database.base import utc_now
from ..errors import ConflictError, NotFoundError
from ..jobs import NewJob
from ..jobs.liveness import is_alive
from ..models import LIVE_STATES, Deployment, EngineRecord, EngineReplica, Job, Worker
from .requests import KEY_VARIABLE, Subjects

__all__ = ["Place", "job_of", "place", "same_request"]


@dataclass(frozen=True)
class Place:
    """What is measured, and where."""

    name: str
    """In words."""
    engine: str | None
    """An engine's id."""
    url: str | None
    model: str | None
    metrics: str | None
    key_variable: str | None
    """Where the job's process finds the endpoint's key."""
    sealed: str | None
    host: str | None
    home: str | None
    deployment_id: str | None = None
    """Of ours, whose key is asked for."""
    overrides: Overrides | None = None
    """With which the engine is started, or was."""


def place(session: Session, wanted: Subjects, sealer: Sealer, *, beside: str | None = None) -> Place:
    """Find it.

    Args:
        session: where to look.
        wanted: what is measured.
        sealer: encrypts an endpoint's key.
        beside: id of another engine that must lie in the same home.

    Raises:
        NotFoundError: there is no such engine or deployment.
        ConflictError: no host has the engine whole, or the deployment does not answer.
    """
    if wanted.engine_id is not None:
        return _engine(session, wanted, beside)
    if wanted.deployment_id is not None:
        return _deployment(session, wanted.deployment_id)
    key = wanted.api_key.get_secret_value() if wanted.api_key is not None else None
    return Place(
        name=wanted.model or wanted.server or str(wanted.url),
        engine=None,
        url=wanted.url,
        model=wanted.model,
        metrics=None,
        key_variable=KEY_VARIABLE if key else None,
        sealed=sealer.seal({"api_key": key}) if key else None,
        host=wanted.host,
        home=None,
    )


def _engine(session: Session, wanted: Subjects, beside: str | None) -> Place:
    names = {}
    for id_ in (wanted.engine_id, beside):
        if id_ is not None:
            engine = session.get(EngineRecord, id_)
            if engine is None:
                raise NotFoundError(f"there is no engine {id_}")
            names[id_] = engine.name
    alive = select(Worker.id).where(Worker.host == EngineReplica.host, Worker.home == EngineReplica.home, is_alive(utc_now()))
    whole = select(EngineReplica).where(EngineReplica.engine_id == wanted.engine_id, EngineReplica.state == "present")
    if wanted.host is not None:
        whole = whole.where(EngineReplica.host == wanted.host)
    if beside is not None:
        other = aliased(EngineReplica)
        same = (other.host == EngineReplica.host, other.home == EngineReplica.home, other.state == "present")
        whole = whole.where(select(other.id).where(other.engine_id == beside, *same).exists())
    found = session.scalar(whole.order_by(alive.exists().desc(), EngineReplica.id).limit(1))
    if found is None:
        where = "no host has" if wanted.host is None else f"host {wanted.host} does not have"
        what = " and ".join(f"engine {name}" for name in names.values())
        raise ConflictError(f"{where} {what} whole", hint="Build what is missing, or choose another host.")
    return Place(
        name=names[found.engine_id],
        engine=found.engine_id,
        url=None,
        model=None,
        metrics=None,
        key_variable=None,
        sealed=None,
        host=found.host,
        home=found.home,
        overrides=wanted.overrides,
    )


def _deployment(session: Session, deployment_id: str) -> Place:
    row = session.get(Deployment, deployment_id)
    if row is None:
        raise NotFoundError(f"there is no deployment {deployment_id}")
    if row.state not in LIVE_STATES or row.endpoints is None:
        raise ConflictError(f"deployment {row.name} is {row.state} and does not answer", hint="Its page says when it is ready.")
    keyed = bool(row.settings.get("keyed"))
    return Place(
        name=row.name,
        engine=row.engine_id,
        url=str(row.endpoints["openai"]),
        model=row.name,
        metrics=row.endpoints.get("metrics"),
        key_variable=KEY_VARIABLE if keyed else None,
        sealed=None,
        host=row.host,
        home=row.home,
        deployment_id=row.id if keyed else None,
        overrides=Overrides.model_validate(row.settings.get("overrides", {})),
    )


def job_of(
    kind: Literal["benchmark", "evaluate"],
    where: Place,
    payload: dict[str, Any],
    actor: Actor,
    key: str | None,
) -> NewJob:
    """The job that measures it."""
    return NewJob(
        kind=kind,
        subject=where.name,
        payload=payload,
        sealed=where.sealed,
        requested_by=actor.name,
        idempotency_key=key,
        engine_id=where.engine,
        host=where.host,
        home=where.home,
    )


def same_request(known: Job, asked: dict[str, Any]) -> Job:
    """The job that somebody got who asks again with its key.

    Raises:
        UsageError: the key was used for another request.
    """
    if known.payload.get("asked") != asked:
        raise UsageError(f"the key {known.idempotency_key!r} was used for another request (job {known.id})")
    return known
