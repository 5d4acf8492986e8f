"""The home page: what is served, what is being built, what needs attention."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from ..page import Page
from ..who import needs

__all__ = ["router"]

router = APIRouter()


@router.get("/", dependencies=[needs("read")])
def home(page: Page) -> Response:
    """The home page."""
    return page("home.html")
