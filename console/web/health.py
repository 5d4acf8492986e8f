"""Routes for probes; open to everybody, and they tell nothing else."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from ..models import Setting
from .state import state_of

__all__ = ["router"]

router = APIRouter()


@router.get("/livez")
@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether the process answers, under both names that are in use. It needs no thread: also when all of them are busy."""
    return {"status": "ok"}


@router.get("/readyz")
def readyz(request: Request) -> JSONResponse:
    """Whether it could answer with something: the database is there."""
    try:
        with state_of(request).database.reading() as session:
            session.execute(select(Setting.key).limit(1))
    except SQLAlchemyError:
        return JSONResponse({"status": "not ready", "reason": "the database does not answer"}, 503)
    return JSONResponse({"status": "ready"})
