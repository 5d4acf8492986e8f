"""Where engines could be deployed: hosts that have them whole and a worker that is alive."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.hardware import Hardware

from ..database.base import utc_now
from ..jobs.liveness import is_alive
from ..models import LIVE_STATES, Deployment, EngineRecord, EngineReplica, Worker

__all__ = ["DeployableEngine", "DeployableHost", "deployable_engines", "deployable_hosts", "find_engine", "names_in_use"]

_MOST = 200


class DeployableEngine(BaseModel):
    """An engine that might be deployed."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    target: str
    weights: str
    kv_cache: str
    manifest: dict[str, Any]


class DeployableHost(BaseModel):
    """A host that has an engine, as its worker tells of it."""

    model_config = ConfigDict(frozen=True)

    host: str
    hardware: Hardware | None
    """None where a worker of another version tells of it in other words."""


def deployable_engines(session: Session, chosen: str | None) -> list[tuple[str, str]]:
    """Id and name of engines that some host has whole, the newest first, and the chosen one before them. One statement."""
    whole = select(EngineReplica.engine_id).where(EngineReplica.state == "present")
    known = EngineRecord.id.in_(whole) if chosen is None else EngineRecord.id.in_(whole) | (EngineRecord.id == chosen)
    order = (EngineRecord.id != (chosen or ""), EngineRecord.created_at.desc(), EngineRecord.id)
    found = session.execute(select(EngineRecord.id, EngineRecord.name).where(known).order_by(*order).limit(_MOST))
    return [(id_, name) for id_, name in found]


def find_engine(session: Session, engine_id: str) -> DeployableEngine | None:
    """One of them. One statement."""
    columns = [getattr(EngineRecord, name) for name in DeployableEngine.model_fields]
    row = session.execute(select(*columns).where(EngineRecord.id == engine_id)).one_or_none()
    return None if row is None else DeployableEngine(**row._mapping)


def deployable_hosts(session: Session, engine_id: str) -> list[DeployableHost]:
    """Where an engine could run now, by name. One statement."""
    same = (Worker.host == EngineReplica.host) & (Worker.home == EngineReplica.home)
    here = (EngineReplica.engine_id == engine_id, EngineReplica.state == "present", is_alive(utc_now()))
    found = session.execute(
        select(Worker.host, Worker.hardware).join(EngineReplica, same).where(*here).order_by(Worker.host, Worker.seen_at)
    )
    hosts = {host: DeployableHost(host=host, hardware=_hardware(hardware)) for host, hardware in found}
    return list(hosts.values())


def _hardware(told: dict[str, Any]) -> Hardware | None:
    try:
        return Hardware.model_validate(told)
    except ValidationError:
        return None


def names_in_use(session: Session, name: str) -> dict[str, str]:
    """Where something is served under a name: the deployment's id by host. One statement."""
    taken = (Deployment.name == name, Deployment.state.in_(LIVE_STATES))
    return {row.host: row.id for row in session.execute(select(Deployment.host, Deployment.id).where(*taken))}
