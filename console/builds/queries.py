"""What a job's page shows beside the job itself."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.recipe import Recipe

from ..jobs.records import JobDetail
from ..models import EngineRecord

__all__ = ["BuiltEngine", "built_engine", "built_manifest", "recipe_of"]


class BuiltEngine(BaseModel):
    """An engine as the page of the job that made it tells of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    id: str
    name: str
    base_bytes: int
    """Of the model's tensors."""
    checkpoint_bytes: int
    """Of the tensors that were written."""
    total_bytes: int
    """Of all its files."""
    kv_tokens: int
    top1_agreement: float | None
    """With the base, from 0 to 1; None where the build could not measure it."""
    kl: float | None
    """Divergence from the base, in nats."""


def built_engine(session: Session, job: JobDetail) -> BuiltEngine | None:
    """The engine that a build made, in one statement; None for other jobs, and while there is none."""
    if job.kind != "build" or job.engine_id is None:
        return None
    columns = [getattr(EngineRecord, name) for name in BuiltEngine.model_fields]
    row = session.execute(select(*columns).where(EngineRecord.id == job.engine_id)).one_or_none()
    return None if row is None else BuiltEngine.model_validate(row)


def built_manifest(session: Session, job: JobDetail) -> dict[str, Any] | None:
    """``engine.json`` of the engine that a build has made, in one statement; None where there is none."""
    if job.kind != "build" or job.state != "succeeded" or job.engine_id is None:
        return None
    return session.scalar(select(EngineRecord.manifest).where(EngineRecord.id == job.engine_id))


def recipe_of(job: JobDetail) -> Recipe | None:
    """The recipe of a build; None for other jobs, and where this version cannot read it."""
    if job.kind != "build":
        return None
    try:
        return Recipe.model_validate(job.payload.get("recipe"))
    except ValidationError:
        return None
