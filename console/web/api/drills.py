"""Drills, for programs."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ...drills.actions import ask_drill
from ...drills.queries import drill_detail, list_drills
from ...drills.records import DrillDetail, DrillRow, DrillWish
from ...paging import Paged
from ..page import ListPage
from ..state import state_of
from ..who import Builder, Reading, needs
from .asked import IdempotencyKey, JobId

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/drills", tags=["drills"])


@router.get("", dependencies=[needs("read")])
def drills(session: Reading, part: ListPage) -> Paged[DrillRow]:
    """Every drill, the newest first."""
    return list_drills(session, part)


@router.post("", status_code=202)
def ask(
    request: Request, response: Response, actor: Builder, wish: DrillWish, idempotency_key: IdempotencyKey = None
) -> DrillDetail:
    """Have a drill played."""
    with state_of(request).database.writing() as session:
        job = ask_drill(session, actor, wish, key=idempotency_key)
        response.headers["location"] = f"/api/v1/drills/{job.id}"
        return drill_detail(session, job.id)


@router.get("/{drill_id}", dependencies=[needs("read")])
def drill(session: Reading, drill_id: JobId) -> DrillDetail:
    """One drill, with its report when it has ended."""
    return drill_detail(session, drill_id)
