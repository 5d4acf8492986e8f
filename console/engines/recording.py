"""Writing down which engines there are, and on which host; only workers do, for the homes that they see."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, delete, update
from sqlalchemy.orm import Session

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home

from ..database.base import utc_now
from ..database.upserts import insert_or_update
from ..models import EngineRecord, EngineReplica

__all__ = ["forget_replica", "mark_replica", "record_engine"]


def record_engine(session: Session, engine: Engine, host: str, home: Home) -> None:
    """Write down an engine and that this home has a good copy of it.

    Args:
        session: of a transaction that writes.
        engine: whose manifest was read.
        host: the name of this host.
        home: where it lies.
    """
    manifest, now = engine.manifest, utc_now()
    plan, recipe = manifest.plan, manifest.recipe
    values = {
        "id": manifest.id,
        "name": manifest.name,
        "model": recipe.model,
        "target": recipe.target,
        "role": recipe.role,
        "weights": recipe.weights,
        "group_size": plan.group_size,
        "kv_cache": recipe.kv_cache,
        "total_bytes": engine.total_bytes,
        "base_bytes": plan.base_bytes,
        "checkpoint_bytes": plan.checkpoint_bytes,
        "kv_tokens": plan.kv_tokens,
        "top1_agreement": manifest.quality.top1_agreement if manifest.quality else None,
        "kl": manifest.quality.kl if manifest.quality else None,
        "manifest": manifest.model_dump(mode="json"),
        "created_at": datetime.fromisoformat(manifest.created),
        "recorded_at": now,
    }
    insert_or_update(session, EngineRecord, values, key=["id"], keep=["recorded_at"])
    replica = {
        "engine_id": manifest.id,
        "host": host,
        "home": str(home.path),
        "folder": str(engine.folder),
        "state": "present",
        "problem": None,
        "found_at": now,
        "verified_at": None,
    }
    insert_or_update(session, EngineReplica, replica, key=["engine_id", "host", "home"])


def mark_replica(session: Session, engine_id: str, host: str, home: Home, *, problem: str | None) -> None:
    """Write down what is wrong with a copy; with None, that every file was just hashed and nothing is."""
    values = {"state": "damaged" if problem else "present", "problem": problem}
    verified = {} if problem else {"verified_at": utc_now()}
    session.execute(update(EngineReplica).where(*_place(engine_id, host, home)).values(**values, **verified))


def forget_replica(session: Session, engine_id: str, host: str, home: Home) -> None:
    """Write down that this home has it no longer. The engine's own row stays: jobs and deployments name it."""
    session.execute(delete(EngineReplica).where(*_place(engine_id, host, home)))


def _place(engine_id: str, host: str, home: Home) -> tuple[ColumnElement[bool], ...]:
    return EngineReplica.engine_id == engine_id, EngineReplica.host == host, EngineReplica.home == str(home.path)
