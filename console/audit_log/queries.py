"""Entries of the audit log: a list, and one of them."""

from __future__ import annotations

from datetime import UTC, datetime, time

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session

from ..errors import NotFoundError
from ..models import AuditEntry
from ..paging import Paged, PageOf, paged_rows
from .records import AuditFilter, AuditRow

__all__ = ["find_entry", "list_entries"]

_COLUMNS = [getattr(AuditEntry, name) for name in AuditRow.model_fields]


def list_entries(session: Session, wanted: AuditFilter, page: PageOf) -> Paged[AuditRow]:
    """A page of the entries that fit, the newest first, in two statements."""
    rows, total = paged_rows(session, select(*_COLUMNS).where(*_conditions(wanted)).order_by(AuditEntry.id.desc()), page)
    return Paged(items=tuple(AuditRow(**row._mapping) for row in rows), total=total, page=page.number, size=page.size)


def find_entry(session: Session, entry_id: int) -> AuditRow:
    """One entry.

    Raises:
        NotFoundError: there is none with this number.
    """
    row = session.execute(select(*_COLUMNS).where(AuditEntry.id == entry_id)).one_or_none()
    if row is None:
        raise NotFoundError(f"the audit log has no entry {entry_id}")
    return AuditRow(**row._mapping)


def _conditions(wanted: AuditFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.who is not None:
        conditions.append(AuditEntry.who == wanted.who)
    if wanted.action is not None:
        begins = AuditEntry.action.startswith(f"{wanted.action}.", autoescape=True)
        conditions.append(or_(AuditEntry.action == wanted.action, begins))
    if wanted.subject_kind is not None:
        conditions.append(AuditEntry.subject_kind == wanted.subject_kind)
    if wanted.subject is not None:
        conditions.append(AuditEntry.subject == wanted.subject)
    if wanted.since is not None:
        conditions.append(AuditEntry.at >= datetime.combine(wanted.since, time.min, UTC))
    if wanted.until is not None:
        # Not the next midnight: the last day that there is has none.
        conditions.append(AuditEntry.at <= datetime.combine(wanted.until, time.max, UTC))
    return conditions
