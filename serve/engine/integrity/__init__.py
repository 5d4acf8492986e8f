"""Whether every page that a step is about to read is its request's own, and still what was written into it."""

from __future__ import annotations

from ..page_events import Holder, IntegrityEvent, MismatchKind, mismatch_error
from ..page_history import NO_HISTORY, PageHistory
from .check import Integrity, IntegrityCheck, Mismatch, NullIntegrity, create_integrity
from .content import ContentCheck

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
