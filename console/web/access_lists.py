"""Which accounts, audit entries and workers a list shows, from its URL; pages and API say it alike. Empty means any."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import Depends, Path, Query

from ..accounts.records import AccountState, UserFilter
from ..audit_log.records import AuditFilter
from ..errors import FieldError
from ..models import Role
from ..workers.records import WorkerFilter, WorkerState

__all__ = ["EntriesWanted", "RowId", "UsersWanted", "WorkersWanted"]

_Text = Annotated[str, Query(max_length=200)]
RowId = Annotated[int, Path(ge=1, le=2**31 - 1)]
"""A number that a row can have."""


def _users(text: _Text = "", role: Role | None = None, state: AccountState | None = None) -> UserFilter:
    return UserFilter(text=text.strip() or None, role=role, state=state)


def _entries(
    who: _Text = "",
    action: _Text = "",
    subject_kind: _Text = "",
    subject: _Text = "",
    since: _Text = "",
    until: _Text = "",
) -> AuditFilter:
    return AuditFilter(
        who=who.strip() or None,
        action=action.strip() or None,
        subject_kind=subject_kind.strip() or None,
        subject=subject.strip() or None,
        since=_day("since", since),
        until=_day("until", until),
    )


def _day(field: str, given: str) -> date | None:
    try:
        return date.fromisoformat(given.strip()) if given.strip() else None
    except ValueError:
        raise FieldError(field, f"{given!r} is no day", hint="Write it as 2026-01-31.") from None


def _workers(state: WorkerState | None = None, host: _Text = "") -> WorkerFilter:
    return WorkerFilter(state=state, host=host or None)


UsersWanted = Annotated[UserFilter, Depends(_users)]
EntriesWanted = Annotated[AuditFilter, Depends(_entries)]
WorkersWanted = Annotated[WorkerFilter, Depends(_workers)]
