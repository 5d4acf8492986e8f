"""Engines, for programs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from ...engines.actions import ask_remove, ask_verify
from ...engines.queries import engine_detail, list_engines
from ...engines.records import EngineDetail, EngineJob, EngineRow
from ...models import Job
from ...paging import Paged
from ..engine_list import EngineListSort, EnginesWanted
from ..page import ListPage
from ..state import state_of
from ..who import Builder, Reading, needs
from .asked import EngineId, IdempotencyKey

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/engines", tags=["engines"])


@router.get("", dependencies=[needs("read")])
def engines(session: Reading, part: ListPage, wanted: EnginesWanted, sort: EngineListSort = "-made") -> Paged[EngineRow]:
    """Every engine, with filters."""
    return list_engines(session, wanted, part, sort)


@router.get("/{engine_id}", dependencies=[needs("read")])
def engine(session: Reading, engine_id: EngineId) -> EngineDetail:
    """One engine, with its copies, deployments, jobs and manifest."""
    return engine_detail(session, engine_id)


@router.get("/{engine_id}/manifest", dependencies=[needs("read")])
def manifest(session: Reading, engine_id: EngineId) -> dict[str, Any]:
    """Its `engine.json`."""
    return engine_detail(session, engine_id).manifest


@router.post("/{engine_id}/verify", status_code=202)
def verify(
    request: Request,
    response: Response,
    actor: Builder,
    engine_id: EngineId,
    replica: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="One copy's id; all when it is left out.")] = None,
    idempotency_key: IdempotencyKey = None,
) -> list[EngineJob]:
    """Have every file hashed and compared with the manifest: a job for each copy."""
    with state_of(request).database.writing() as session:
        return _told(response, ask_verify(session, actor, engine_id, replica_id=replica, key=idempotency_key))


@router.delete("/{engine_id}", status_code=202)
def remove(
    request: Request,
    response: Response,
    actor: Builder,
    engine_id: EngineId,
    idempotency_key: IdempotencyKey = None,
) -> list[EngineJob]:
    """Have its files removed from every host: a job for each copy. Refused (409) while it is served."""
    with state_of(request).database.writing() as session:
        return _told(response, ask_remove(session, actor, engine_id, key=idempotency_key))


def _told(response: Response, jobs: list[Job]) -> list[EngineJob]:
    response.headers["location"] = f"/api/v1/jobs/{jobs[0].id}"
    return [EngineJob(**{name: getattr(job, name) for name in EngineJob.model_fields}) for job in jobs]
