"""Published tables, and beside them what was measured here."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from ...benchmarks.published import beside_published
from ..page import Page
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(dependencies=[needs("read")])


@router.get("/benchmarks/published")
def published(page: Page, session: Reading) -> Response:
    """Both, clearly apart."""
    return page("benchmarks/published.html", techniques=beside_published(session))
