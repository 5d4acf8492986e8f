"""Who holds each page of a deployment's pool: asked of its front whenever somebody looks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from ...page_maps.looking import look
from ..page import Page
from ..page_maps import FEW_CELLS, MOST_CELLS, drawn
from ..state import state_of
from ..who import needs

__all__ = ["router"]

router = APIRouter(prefix="/deployments/{deployment_id}/pages", dependencies=[needs("read")])
Marked = Annotated[int | None, Query(ge=0, le=2**31 - 1)]


@router.get("")
async def pages(request: Request, page: Page, deployment_id: str, marked: Marked = None, small: bool = False) -> Response:
    """The map, for a page that follows it; with a frame around it and its table open for whoever has no scripts."""
    state = state_of(request)
    looked = await look(state.database, state.settings.home, deployment_id)

    def shown() -> Response:
        values = drawn(looked, FEW_CELLS if small else MOST_CELLS, marked)
        if "hx-request" not in request.headers:
            return page("deployments/pages.html", **values)
        return page.fragment("deployments/page_map_small.html" if small else "deployments/page_map_now.html", **values)

    return await run_in_threadpool(shown)
