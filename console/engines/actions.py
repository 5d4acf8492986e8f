"""What people ask to be done with an engine's files. Workers do it, on the hosts where the files are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ..access.actor import Actor
from ..database.turns import take_turn
from ..errors import ConflictError, NotFoundError
from ..jobs import NewJob
from ..jobs.asking import ask_for
from ..models import LIVE_JOB_STATES, LIVE_STATES, Deployment, EngineRecord, EngineReplica, Job

__all__ = ["ask_remove", "ask_verify"]


def ask_verify(
    session: Session, actor: Actor, engine_id: str, *, replica_id: int | None = None, key: str | None = None
) -> list[Job]:
    """Have every file of an engine hashed, on each host that has a copy, or for one copy.

    Returns:
        The jobs; for a copy that is being verified already, the job that does.

    Raises:
        NotFoundError: there is no such engine, or no such copy of it.
        ConflictError: no host has it.
        UsageError: the key was used for another wish.
    """
    if known := _asked_before(session, actor, "verify", engine_id, key):
        return known
    engine, replicas = _found(session, engine_id, replica_id)
    return [_asked(session, actor, "verify", engine, replica, key) for replica in replicas]


def ask_remove(session: Session, actor: Actor, engine_id: str, *, key: str | None = None) -> list[Job]:
    """Have an engine's files deleted on every host; what is known of it stays.

    Returns:
        The jobs; for a copy that is being removed already, the job that does.

    Raises:
        NotFoundError: there is no such engine.
        ConflictError: it is being served, or no host has it.
        UsageError: the key was used for another wish.
    """
    if known := _asked_before(session, actor, "remove", engine_id, key):
        return known
    engine, replicas = _found(session, engine_id, None)
    live = (Deployment.engine_id == engine_id, Deployment.state.in_(LIVE_STATES))
    names = session.scalars(select(Deployment.name).where(*live).order_by(Deployment.name)).all()
    if names:
        raise ConflictError(
            f"engine {engine.name} is being served by {', '.join(names)}; nothing was removed",
            hint="Stop these deployments first.",
        )
    return [_asked(session, actor, "remove", engine, replica, key) for replica in replicas]


def _asked_before(
    session: Session, actor: Actor, kind: Literal["verify", "remove"], engine_id: str, key: str | None
) -> list[Job]:
    """The jobs that somebody got for a key, after they have ended, too: by then a removed engine has no copy any more."""
    take_turn(session)
    if key is None:
        return []
    with_key = func.substr(Job.idempotency_key, 1, len(key) + 1) == f"{key}/"
    jobs = list(session.scalars(select(Job).where(Job.requested_by == actor.name, with_key).order_by(Job.id)))
    if any((job.kind, job.engine_id) != (kind, engine_id) for job in jobs):
        raise UsageError(f"the key {key!r} was used for another request (job {jobs[0].id})")
    return jobs


def _found(session: Session, engine_id: str, replica_id: int | None) -> tuple[EngineRecord, Sequence[EngineReplica]]:
    engine = session.get(EngineRecord, engine_id)
    if engine is None:
        raise NotFoundError(f"there is no engine {engine_id}")
    wanted = select(EngineReplica).where(EngineReplica.engine_id == engine_id).order_by(EngineReplica.id)
    if replica_id is not None:
        wanted = wanted.where(EngineReplica.id == replica_id)
    replicas = session.scalars(wanted).all()
    if not replicas and replica_id is not None:
        raise NotFoundError(f"engine {engine_id} has no copy {replica_id}", hint="It may have been removed meanwhile.")
    if not replicas:
        raise ConflictError(f"no host has the files of engine {engine.name} any more", hint="Build it again to have them.")
    return engine, replicas


def _asked(
    session: Session,
    actor: Actor,
    kind: Literal["verify", "remove"],
    engine: EngineRecord,
    replica: EngineReplica,
    key: str | None,
) -> Job:
    place = (Job.host == replica.host, Job.home == replica.home)
    of_it = select(Job).where(Job.engine_id == engine.id, Job.kind == kind, *place)
    under_way = session.scalar(of_it.where(Job.state.in_(LIVE_JOB_STATES)).order_by(Job.id).limit(1))
    if under_way is not None:
        return under_way
    new = NewJob(
        kind=kind,
        subject=engine.name,
        payload={"engine_id": engine.id},
        requested_by=actor.name,
        # One key for what was asked, and a job for each copy.
        idempotency_key=None if key is None else f"{key}/{replica.host}{replica.home}",
        engine_id=engine.id,
        host=replica.host,
        home=replica.home,
        most_attempts=2,
    )
    detail = {"name": engine.name, "host": replica.host}
    return ask_for(session, actor, new, action=f"engine.{kind}", subject_kind="engine", subject=engine.id, **detail)
