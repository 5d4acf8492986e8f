"""The dependency with which routes answer pages, and the one that tells which part of a list is wanted."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse

from ..access.actor import Actor
from ..paging import PageOf
from .navigation import Attention, attention
from .state import state_of
from .who import Reading, find_actor

__all__ = ["ListPage", "Page", "PageMaker"]


class PageMaker:
    """Renders pages for one request, as whoever asks sees them."""

    def __init__(self, request: Request, session: Reading, actor: Annotated[Actor | None, Depends(find_actor)]) -> None:
        self._request = request
        self._session = session
        self._actor = actor

    def __call__(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page from a template and what it needs."""
        counted = attention(self._session) if self._actor else Attention()
        return state_of(self._request).templates.page(self._request, template, self._actor, counted, status, **values)

    def fragment(self, template: str, **values: Any) -> HTMLResponse:
        """A part of a page, for a script that puts it in its place."""
        return HTMLResponse(state_of(self._request).templates.fragment(template, actor=self._actor, **values))


Page = Annotated[PageMaker, Depends()]


def _list_page(page: Annotated[int, Query(ge=1, le=100_000)] = 1, size: Annotated[int, Query(ge=1, le=200)] = 50) -> PageOf:
    return PageOf(number=page, size=size)


ListPage = Annotated[PageOf, Depends(_list_page)]
