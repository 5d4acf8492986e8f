"""Laying a chart out. All places are percent of the plot, whose width is the column's and whose letters keep their size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from .model import Axis, ChartPoint, Rule, Series
from .scales import Scale, make_scale
from .table import ChartTable, point_text, table_of

__all__ = ["LOOKS", "Chart", "DrawnPoint", "DrawnRule", "DrawnSeries", "line_chart"]

LOOKS = 8
"""Colours, and marks."""
HEIGHT = 240
"""Pixels of a plot, unless asked otherwise."""
_MARKS = (
    "M0-4A4 4 0 0 1 0 4A4 4 0 0 1 0-4Z",
    "M-3.6-3.6H3.6V3.6H-3.6Z",
    "M0-4.8L4.5 3.4H-4.5Z",
    "M0-5L4.4 0L0 5L-4.4 0Z",
    "M0 4.8L4.5-3.4H-4.5Z",
    "M-1.5-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z",
    "M-4.8 0L-2.4-4.2H2.4L4.8 0L2.4 4.2H-2.4Z",
    "M-4.5-2.5L-2.5-4.5L0-2L2.5-4.5L4.5-2.5L2 0L4.5 2.5L2.5 4.5L0 2L-2.5 4.5L-4.5 2.5L-2 0Z",
)
"""Circle, square, triangle, diamond, triangle down, plus, hexagon, cross; about zero, in pixels."""


@dataclass(frozen=True)
class DrawnPoint:
    """A mark."""

    x: float
    y: float
    low: float | None
    high: float | None
    """Of the interval, as places; None where it has none, or where a band shows it."""
    text: str
    """All that is known of it."""
    point: ChartPoint

    @property
    def label_before(self) -> bool:
        """Whether its label goes to its left, because the right edge is near."""
        return self.x > 88


@dataclass(frozen=True)
class DrawnSeries:
    """A line with its marks."""

    name: str
    colour: int
    """From 1."""
    mark: str
    """Path of the mark."""
    dash: int
    """From 0, which is a line without gaps."""
    line: str
    """Path on a plot of 1000 × 1000; empty where no two points are neighbours."""
    band: str
    """Path of the intervals between neighbours; empty where there are none."""
    points: tuple[DrawnPoint, ...]


@dataclass(frozen=True)
class DrawnRule:
    """A level across."""

    place: float
    rule: Rule


@dataclass(frozen=True)
class Chart:
    """A chart that is laid out."""

    id: str
    title: str
    description: str
    x: Axis
    y: Axis
    x_scale: Scale
    y_scale: Scale
    series: tuple[DrawnSeries, ...]
    rules: tuple[DrawnRule, ...]
    table: ChartTable
    height: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on it."""
        return not any(each.points for each in self.series)

    @property
    def has_legend(self) -> bool:
        """Whether it takes more than its title to know what a line is."""
        return len(self.series) > 1


def line_chart(
    id_: str,
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    series: Sequence[Series],
    *,
    rules: Sequence[Rule] = (),
    height: int = HEIGHT,
) -> Chart:
    """Lay series out on two axes.

    Args:
        id_: of the picture in its page, for what describes it: letters, digits and hyphens.
        title: what it shows.
        description: what a reader should know to read it, in a sentence.
        x: the axis along.
        y: the axis up.
        series: each in the order in which its points are joined.
        rules: levels across.
        height: pixels of the plot.
    """
    known = [point for each in series for point in each.points if _shown(point, x)]
    x_scale = make_scale(x, [point.x for point in known])
    ups = [value for point in known for value in (point.y, point.low, point.high) if value is not None]
    y_scale = make_scale(y, [*ups, *(rule.y for rule in rules)])
    drawn = tuple(
        _drawn(each, place if each.look is None else each.look, x, y, x_scale, y_scale) for place, each in enumerate(series)
    )
    levels = tuple(DrawnRule(_up(y_scale, rule.y), rule) for rule in rules)
    return Chart(id_, title, description, x, y, x_scale, y_scale, drawn, levels, table_of(x, y, series), height)


def _drawn(series: Series, look: int, x: Axis, y: Axis, x_scale: Scale, y_scale: Scale) -> DrawnSeries:
    points: list[DrawnPoint] = []
    lines: list[str] = []
    bands: list[str] = []
    for run in _runs(series.points, x):
        is_line = len(run) > 1
        with_band = is_line and all(each.low is not None and each.high is not None for each in run)
        for each in run:
            level = _up(y_scale, each.y or 0.0)
            ends = (None, None) if with_band else (_maybe_up(y_scale, each.low), _maybe_up(y_scale, each.high))
            points.append(DrawnPoint(x_scale.place(each.x), level, *ends, point_text(x, y, series.name, each), each))
        places = [(each.x, each.y) for each in points[-len(run) :]]
        if is_line:
            lines.append(_path(places))
        if with_band:
            upper = [(x_scale.place(each.x), _up(y_scale, each.high or 0.0)) for each in run]
            lower = [(x_scale.place(each.x), _up(y_scale, each.low or 0.0)) for each in reversed(run)]
            bands.append(f"{_path([*upper, *lower])}Z")
    around = look // LOOKS
    return DrawnSeries(
        series.name,
        look % LOOKS + 1,
        _MARKS[(look + around) % LOOKS],
        (look + around) % 4,
        "".join(lines),
        "".join(bands),
        tuple(points),
    )


def _runs(points: Sequence[ChartPoint], x: Axis) -> Iterator[list[ChartPoint]]:
    """Points that follow one another without a gap."""
    for is_known, run in groupby(points, key=lambda each: _shown(each, x)):
        if is_known:
            yield list(run)


def _shown(point: ChartPoint, x: Axis) -> bool:
    return point.y is not None and (x.kind != "log2" or point.x > 0)


def _up(scale: Scale, value: float) -> float:
    """Percent from the top."""
    return round(100 - scale.place(value), 3)


def _maybe_up(scale: Scale, value: float | None) -> float | None:
    return None if value is None else _up(scale, value)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x * 10:g} {y * 10:g}" for x, y in places)
