"""What an engine loop counts."""

from __future__ import annotations

import msgspec

__all__ = ["Histogram", "Status"]


class Histogram(msgspec.Struct, frozen=True):
    """Counts by upper bound since the start; ``counts`` has one more for what is above the last bound."""

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    total: float = 0.0
    """Sum of all observed values."""


class Status(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    """Gauges now (requests and pages) and counters since the start (steps, tokens and tag checks)."""

    running: int
    waiting: int
    pages_free: int
    pages_used: int
    pages_quarantined: int
    tokens_in: int
    """Prompt tokens of admitted requests."""
    tokens_out: int
    pages_cached: int = 0
    """Pages that only the prefix cache holds: given up when somebody needs them."""
    cached_tokens: int = 0
    """Prompt tokens that were not computed, because their pages were there."""
    steps: int = 0
    """Steps that had something to run."""
    preemptions: int = 0
    """Times that a running request gave its pages to another and waits to be computed again."""
    ttft: Histogram = Histogram()
    """Seconds from a request's arrival to its first token."""
    inter_token: Histogram = Histogram()
    """Seconds between two tokens of one answer."""
    guard: str
    """What is checked before every step: off, tags or tags+content."""
    tag_checks: int
    """Batched comparisons made: one a step, and one more when rows had to be dropped."""
    tag_mismatches: int
    """Rows that were stopped because a page's tag was not the one that was issued with it."""
    content_checks: int = 0
    """Pages whose content was compared."""
    content_mismatches: int = 0
    """Rows that were stopped because a page did not hold what was written into it."""
