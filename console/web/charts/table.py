"""What a chart shows, as a table and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ..formats import UNKNOWN, number_text
from .model import Axis, ChartPoint, Series

__all__ = ["ChartTable", "point_text", "table_of", "value_text"]


_EMPTY = 2
"""Cells for each point, of a table that is too empty."""


@dataclass(frozen=True)
class ChartTable:
    """The data of a chart. The first column names the row."""

    head: tuple[str, ...]
    rows: tuple[tuple[tuple[str, str], ...], ...]
    """Cells: text, and what is said below it."""


def value_text(axis: Axis, value: float | None) -> str:
    """A value of an axis, without its unit."""
    if value is None:
        return UNKNOWN
    if axis.kind == "time":
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M}"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e12 else number_text(value)


def point_text(x: Axis, y: Axis, name: str, point: ChartPoint) -> str:
    """All that is known of a point, in one line."""
    unit = f" {y.unit}" if y.unit else ""
    x_unit = f" {x.unit}" if x.unit else ""
    told = [f"{name}{f', {point.label}' if point.label else ''}: {value_text(y, point.y)}{unit}"]
    told.append(f"{x.label.lower() if x.kind != 'time' else 'at'} {value_text(x, point.x)}{x_unit}")
    if point.low is not None and point.high is not None:
        told.append(f"between {value_text(y, point.low)} and {value_text(y, point.high)}")
    return ", ".join([*told, *(each for each in (point.flag, point.note) if each)])


def table_of(x: Axis, y: Axis, series: Sequence[Series]) -> ChartTable:
    """Wide, a column for each series, where series share their places; long, a row for each point, where points have labels, or
    where most cells of a wide one would say nothing.
    """
    points = [point for each in series for point in each.points]
    places = sorted({point.x for point in points})
    if any(point.label for point in points) or len(places) * len(series) > _EMPTY * len(points):
        return _long(x, y, series)
    found = [{point.x: point for point in each.points} for each in series]
    head = (x.text, *(f"{each.name}, {y.unit}" if y.unit else each.name for each in series))
    rows = tuple(
        ((value_text(x, place), ""), *(_cell(y, points.get(place)) for points in found))  # a row for each place
        for place in places
    )
    return ChartTable(head, rows)


def _long(x: Axis, y: Axis, series: Sequence[Series]) -> ChartTable:
    rows = tuple(
        ((each.name, point.label), (value_text(x, point.x), ""), _cell(y, point)) for each in series for point in each.points
    )
    return ChartTable(("Point", x.text, y.text), rows)


def _cell(y: Axis, point: ChartPoint | None) -> tuple[str, str]:
    if point is None:
        return UNKNOWN, ""
    around = ""
    if point.low is not None and point.high is not None:
        around = f"{value_text(y, point.low)} – {value_text(y, point.high)}"
    return value_text(y, point.y), "; ".join(each for each in (around, point.flag, point.note) if each)
