"""The picture of an evaluation: how far each task is from the base."""

from __future__ import annotations

from collections.abc import Iterable

from roundhouse.serve.accuracy.records import Difference, TaskScore

from .charts import Interval, IntervalChart, interval_chart

__all__ = ["difference_chart"]


def difference_chart(scores: Iterable[TaskScore], gate_points: float) -> IntervalChart | None:
    """Differences of shares in points of 100; None where none was compared."""
    intervals = [
        _interval(score.task, score.difference, gate_points)
        for score in scores
        if score.is_share and score.difference is not None
    ]
    if not intervals:
        return None
    return interval_chart(
        "differences",
        "Against the base",
        "Points of 100; left of zero is worse. Lines are 95 % intervals over the same questions.",
        "points",
        intervals,
        limit=-gate_points,
        limit_text=f"gate: no further down than {gate_points:g} points beyond noise",
    )


def _interval(task: str, difference: Difference, gate_points: float) -> Interval:
    """Toned as the gate judges it: further down than allowed, and not by chance."""
    value, low, high = (100 * each for each in (difference.value, difference.low, difference.high))
    return Interval(task, value, low, high, tone="bad" if value < -gate_points and high < 0 else "good")
