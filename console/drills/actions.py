"""Asking for a drill."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..access.actor import Actor
from ..database.base import utc_now
from ..errors import ConflictError, NotFoundError
from ..jobs import NewJob
from ..jobs.asking import ask_for, asked_before
from ..jobs.liveness import is_alive
from ..models import EngineRecord, EngineReplica, Job, Worker
from .records import DrillWish

__all__ = ["ask_drill"]

_NO_MODEL = "no model"


def ask_drill(session: Session, actor: Actor, wish: DrillWish, *, key: str | None = None) -> Job:
    """Have a drill played; with an engine on a host that has it, one with a live worker where there is one.

    Raises:
        NotFoundError: there is no such engine.
        ConflictError: no host has it whole.
        UsageError: the key was used for another wish.
    """
    payload = wish.model_dump(mode="json")
    if (known := asked_before(session, actor, key, "drill", payload)) is not None:
        return known
    engine, place = _engine(session, wish.engine_id) if wish.engine_id is not None else (None, None)
    new = NewJob(
        kind="drill",
        subject=_NO_MODEL if engine is None else engine.name,
        payload=payload,
        requested_by=actor.name,
        idempotency_key=key,
        engine_id=wish.engine_id,
        host=None if place is None else place.host,
        home=None if place is None else place.home,
    )
    detail = {name: value for name, value in payload.items() if value is not None}
    return ask_for(session, actor, new, action="drill", name=new.subject, **detail)


def _engine(session: Session, engine_id: str) -> tuple[EngineRecord, EngineReplica]:
    engine = session.get(EngineRecord, engine_id)
    if engine is None:
        raise NotFoundError(f"there is no engine {engine_id}")
    alive = select(Worker.id).where(Worker.host == EngineReplica.host, Worker.home == EngineReplica.home, is_alive(utc_now()))
    whole = select(EngineReplica).where(EngineReplica.engine_id == engine_id, EngineReplica.state == "present")
    place = session.scalar(whole.order_by(alive.exists().desc(), EngineReplica.id).limit(1))
    if place is None:
        raise ConflictError(f"no host has engine {engine.name} whole", hint="Build it again, or drill without a model.")
    return engine, place
