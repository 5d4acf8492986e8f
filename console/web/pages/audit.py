"""The audit log, for admins."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from ...audit_log.queries import find_entry, list_entries
from ..access_lists import EntriesWanted, RowId
from ..list_url import ListUrl
from ..page import ListPage, Page
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/audit", dependencies=[needs("admin")])


@router.get("")
def entries(page: Page, session: Reading, part: ListPage, wanted: EntriesWanted) -> Response:
    """What was done, the newest first, with filters."""
    url = ListUrl("/audit", {"size": 50}, **wanted.model_dump(mode="json"), page=part.number, size=part.size)
    return page("audit/list.html", entries=list_entries(session, wanted, part), wanted=wanted, url=url)


@router.get("/{entry_id}")
def entry(page: Page, session: Reading, entry_id: RowId) -> Response:
    """One entry; its address stays."""
    return page("audit/entry.html", entry=find_entry(session, entry_id))
