"""The home page, for programs."""

from __future__ import annotations

from fastapi import APIRouter

from ...overview.queries import overview
from ...overview.records import Overview
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/overview", tags=["overview"], dependencies=[needs("read")])


@router.get("")
def everything(session: Reading) -> Overview:
    """What is served, what is being built, what needs attention."""
    return overview(session)
