"""Differences with their intervals, one under the other, about a line at zero. Places are percent of the width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .scales import Tick, linear_ticks
from .table import ChartTable

__all__ = ["DrawnInterval", "Interval", "IntervalChart", "interval_chart"]

_ROW = 32
"""Pixels."""


@dataclass(frozen=True)
class Interval:
    """A difference that is known within bounds."""

    name: str
    value: float
    low: float
    high: float
    tone: str = "quiet"
    """``good``, ``bad`` or ``quiet``: how it is judged."""
    note: str = ""


@dataclass(frozen=True)
class DrawnInterval:
    """Where it is."""

    interval: Interval
    x: float
    low: float
    high: float
    y: int
    """Pixels from the top to the middle of its row."""


@dataclass(frozen=True)
class IntervalChart:
    """All of them on one axis."""

    id: str
    title: str
    description: str
    unit: str
    rows: tuple[DrawnInterval, ...]
    ticks: tuple[Tick, ...]
    zero: float
    limit: float | None
    """Where the limit is."""
    limit_text: str
    height: int
    """Pixels of the plot."""
    table: ChartTable


def interval_chart(
    id_: str,
    title: str,
    description: str,
    unit: str,
    intervals: Sequence[Interval],
    *,
    limit: float | None = None,
    limit_text: str = "",
) -> IntervalChart:
    """Lay differences out.

    Args:
        id_: of the picture in its page.
        title: what it shows.
        description: how to read it.
        unit: of all of them.
        intervals: from the top.
        limit: a value that none should be beyond.
        limit_text: what that is called.
    """
    ends = [0.0, *(end for each in intervals for end in (each.value, each.low, each.high)), *([] if limit is None else [limit])]
    # Some room beyond zero on both sides: a line at the edge reads like a frame.
    room = (max(ends) - min(ends)) / 10
    least, most = min(*ends, -room), max(*ends, room)
    if most <= least:
        least, most = -1.0, 1.0
    values = linear_ticks(least, most)
    step = values[1] - values[0]
    digits = 0 if step >= 1 and step == round(step) else 1 if step >= 0.1 else 3
    span = values[-1] - values[0]

    def place(value: float) -> float:
        return round(100 * (value - values[0]) / span, 3)

    return IntervalChart(
        id_,
        title,
        description,
        unit,
        tuple(
            DrawnInterval(each, place(each.value), place(each.low), place(each.high), index * _ROW + _ROW // 2)
            for index, each in enumerate(intervals)
        ),
        tuple(Tick(value, place(value), f"{value + 0.0:+,.{digits}f}" if abs(value) > 1e-9 else "0") for value in values),
        place(0.0),
        None if limit is None else place(limit),
        limit_text,
        max(len(intervals), 1) * _ROW,
        _table(unit, intervals, limit),
    )


def _table(unit: str, intervals: Sequence[Interval], limit: float | None) -> ChartTable:
    """A row for each, with both ends of its interval."""
    limits = [] if limit is None else [limit]
    head = ("Of", f"Difference, {unit}", "From", "To", *("Limit" for _ in limits))
    return ChartTable(
        head,
        tuple(
            ((each.name, each.note), *((f"{value:+,.2f}", "") for value in (each.value, each.low, each.high, *limits)))
            for each in intervals
        ),
    )
