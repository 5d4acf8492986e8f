"""A run in a few numbers, as lists show it and sort by it: the same for the command line and the console."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..points import Point, PrefillPoint
from .levels import Level, PrefillLevel, levels_of, prefill_levels_of

__all__ = ["RunSummary", "summary_of"]


@dataclass(frozen=True)
class RunSummary:
    """Speeds are medians over repeats, in tokens a second, and None where nothing tells."""

    tokens_per_s_most: float | None
    """Output, at the concurrency where it is most."""
    concurrency_most: int | None
    tokens_per_s_alone: float | None
    """Output, at concurrency 1."""
    prefill_tokens_per_s: float | None
    """The most of its prompt lengths."""
    failed: int
    """Requests, of all points, those of prefill too."""
    noisy: int
    """Points that others on the machine disturbed, those of prefill too."""


def summary_of(points: Iterable[Point], prefill: Iterable[PrefillPoint]) -> RunSummary:
    """Sum a run up."""
    levels, lengths = levels_of(points), prefill_levels_of(prefill)
    measured: list[Level | PrefillLevel] = [*levels, *lengths]
    most = max(levels, key=lambda level: level.output_tokens_per_s.median, default=None)
    alone = next((level for level in levels if level.concurrency == 1), None)
    return RunSummary(
        tokens_per_s_most=None if most is None else most.output_tokens_per_s.median,
        concurrency_most=None if most is None else most.concurrency,
        tokens_per_s_alone=None if alone is None else alone.output_tokens_per_s.median,
        prefill_tokens_per_s=max((each.tokens_per_s.median for each in lengths if each.tokens_per_s), default=None),
        failed=sum(each.failed for each in measured),
        noisy=sum(each.noisy for each in measured),
    )
