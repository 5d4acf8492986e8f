"""What pages and the API show of the audit log."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["AuditFilter", "AuditRow"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditFilter(_Record):
    """Which entries are listed: those that are all of this."""

    who: str | None = None
    """The whole name of an account."""
    action: str | None = None
    """A whole action, or what stands before its first dot: ``user`` means ``user.add`` too."""
    subject_kind: str | None = None
    subject: str | None = None
    """The whole id or name."""
    since: date | None = None
    """From the beginning of this day, UTC."""
    until: date | None = None
    """To the end of this day, UTC."""

    @property
    def is_set(self) -> bool:
        """Whether anything is left out."""
        return any(value is not None for value in self.model_dump().values())


class AuditRow(_Record):
    """Something that somebody did."""

    id: int
    at: datetime
    who: str
    by: str
    """``browser``, ``token NAME`` or ``command line``."""
    address: str
    action: str
    subject_kind: str
    subject: str
    detail: dict[str, Any]
