"""Whether every page that a step is about to read is its request's own, and still what was written into it."""

from __future__ import annotations

from .check import Integrity, IntegrityCheck, Mismatch, NullIntegrity, create_integrity, mismatch_error
from .content import ContentCheck
from .event import Holder, IntegrityEvent, MismatchKind
from .history import NO_HISTORY, PageHistory

__all__ = [
    "NO_HISTORY",
    "ContentCheck",
    "Holder",
    "Integrity",
    "IntegrityCheck",
    "IntegrityEvent",
    "Mismatch",
    "MismatchKind",
    "NullIntegrity",
    "PageHistory",
    "create_integrity",
    "mismatch_error",
]
