"""The audit log, for programs of admins."""

from __future__ import annotations

from fastapi import APIRouter

from ...audit_log.queries import find_entry, list_entries
from ...audit_log.records import AuditRow
from ...paging import Paged
from ..access_lists import EntriesWanted, RowId
from ..page import ListPage
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/audit", tags=["audit"], dependencies=[needs("admin")])


@router.get("")
def entries(session: Reading, part: ListPage, wanted: EntriesWanted) -> Paged[AuditRow]:
    """What was done, the newest first, with filters."""
    return list_entries(session, wanted, part)


@router.get("/{entry_id}")
def entry(session: Reading, entry_id: RowId) -> AuditRow:
    """One entry."""
    return find_entry(session, entry_id)
