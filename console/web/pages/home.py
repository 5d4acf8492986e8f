"""The home page: what is served, what is being built, what needs attention."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from ...overview.queries import overview
from ..page import Page
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(dependencies=[needs("read")])


@router.get("/")
def home(page: Page, session: Reading) -> Response:
    """The home page."""
    return page("home.html", overview=overview(session))


@router.get("/home/live")
def live(page: Page, session: Reading) -> Response:
    """What is on it by now, for a page that follows it."""
    return page.fragment("home_live.html", overview=overview(session))
