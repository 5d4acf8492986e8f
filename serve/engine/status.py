"""What an engine loop counts."""

from __future__ import annotations

import msgspec

__all__ = ["Status"]


class Status(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    """Gauges now (requests and pages) and counters since the start (tokens and tag checks)."""

    running: int
    waiting: int
    pages_free: int
    pages_used: int
    pages_quarantined: int
    tokens_in: int
    """Prompt tokens of admitted requests."""
    tokens_out: int
    tag_checks: int
    """Batched comparisons made: one a step, and one more when rows had to be dropped."""
    tag_mismatches: int
    """Requests that were ended because a page's tag was not the one they were issued."""
