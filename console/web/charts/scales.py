"""Where a value lies on an axis, and where its ticks are. Places are percent of the axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from .model import Axis, AxisKind

__all__ = ["Scale", "Tick", "linear_ticks", "log2_ticks", "make_scale", "time_ticks"]

_INSET = 4.0
"""Percent that are left free on both sides where values do not begin at zero, so that no mark lies on the edge."""
_MOST_TICKS = 6
_MOST_TIMES = 4
"""Moments are long to write, and columns narrow."""
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TIME_STEPS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
_DAY = 86400
_DAY_STEPS = (1, 2, 4, 7, 14, 28, 56, 91, 182, 364)


@dataclass(frozen=True)
class Tick:
    """A place on an axis that is written down."""

    value: float
    place: float
    text: str


@dataclass(frozen=True)
class Scale:
    """An axis that knows what is on it."""

    kind: AxisKind
    least: float
    most: float
    """Greater than :attr:`least`."""
    before: float
    """Percent that are free before the least value."""
    after: float
    ticks: tuple[Tick, ...] = ()

    def place(self, value: float) -> float:
        """Percent from the beginning of the axis."""
        least, most, at = self.least, self.most, value
        if self.kind == "log2":
            least, most, at = math.log2(least), math.log2(most), math.log2(at)
        return round(self.before + (100 - self.before - self.after) * (at - least) / (most - least), 3)


def make_scale(axis: Axis, values: Sequence[float]) -> Scale:
    """The scale that shows all of some values.

    Args:
        axis: what is on it.
        values: in any order; of a ``log2`` axis those above zero count. None at all make an axis from 0 to 1.
    """
    if axis.kind == "log2":
        return _log2([value for value in values if value > 0])
    if axis.kind == "time":
        return _time(values)
    return _linear(axis, values)


def linear_ticks(least: float, most: float, number: int = _MOST_TICKS) -> list[float]:
    """Round numbers, at most so many, from below the least to above the most value.

    Raises:
        ValueError: the most is not above the least.
    """
    if not most > least:
        raise ValueError(f"no ticks between {least} and {most}")
    power = 10.0 ** math.floor(math.log10((most - least) / number))
    # The last one is forty times what would just fit, so that one of them does.
    for factor in (*_STEPS, *(10 * each for each in _STEPS[1:])):
        step = factor * power
        first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
        if last - first + 1 <= number:
            break
    return [index * step for index in range(first, last + 1)]


def log2_ticks(least: float, most: float, number: int = 12) -> list[float]:
    """Powers of two within a range, every second or fourth of them where there are many; both ends where it holds none."""
    first, last = math.ceil(math.log2(least) - 1e-9), math.floor(math.log2(most) + 1e-9)
    if first > last:
        return [least, most]
    every = -(-(last - first + 1) // number)
    return [2.0**power for power in range(first, last + 1, every)]


def time_ticks(least: float, most: float, number: int = _MOST_TIMES) -> list[tuple[float, str]]:
    """Moments, with how they are told in UTC: the time where days are not needed, else the date."""
    for seconds in (*_TIME_STEPS, *(days * _DAY for days in _DAY_STEPS)):
        first, last = math.ceil(least / seconds), math.floor(most / seconds)
        if last - first + 1 <= number:
            break
    else:
        seconds *= math.ceil((most - least) / seconds / number)
        first, last = math.ceil(least / seconds), math.floor(most / seconds)
    within = datetime.fromtimestamp(least, UTC).date() == datetime.fromtimestamp(most, UTC).date()
    told = "%Y-%m-%d" if seconds >= _DAY else "%H:%M:%S" if seconds < 60 else "%H:%M" if within else "%m-%d %H:%M"
    moments = [float(index * seconds) for index in range(first, last + 1)] or [least]
    return [(moment, datetime.fromtimestamp(moment, UTC).strftime(told)) for moment in moments]


def _linear(axis: Axis, values: Sequence[float]) -> Scale:
    least, most = min(values, default=0.0), max(values, default=1.0)
    if axis.from_zero:
        least, most = min(least, 0.0), max(most, 0.0)
    if most <= least:
        room = abs(least) / 2 or 0.5
        least, most = (0.0, 1.0) if axis.from_zero else (least - room, most + room)
    ticks = linear_ticks(least, most)
    scale = Scale("linear", ticks[0], ticks[-1], 0.0, 0.0)
    digits = _digits(ticks[1] - ticks[0])
    return _with_ticks(scale, [(tick, f"{tick + 0.0:,.{digits}f}") for tick in ticks])


def _log2(values: Sequence[float]) -> Scale:
    least, most = min(values, default=1.0), max(values, default=1.0)
    if most <= least:
        least, most = least / 2, most * 2
    ticks = log2_ticks(least, most)
    return _with_ticks(Scale("log2", least, most, _INSET, _INSET), [(tick, f"{tick:,.10g}") for tick in ticks])


def _time(values: Sequence[float]) -> Scale:
    least, most = min(values, default=0.0), max(values, default=0.0)
    if most <= least:
        least, most = least - _DAY / 2, most + _DAY / 2
    return _with_ticks(Scale("time", least, most, _INSET, _INSET), time_ticks(least, most))


def _with_ticks(scale: Scale, ticks: Sequence[tuple[float, str]]) -> Scale:
    laid = tuple(Tick(value, scale.place(value), text) for value, text in ticks)
    return Scale(scale.kind, scale.least, scale.most, scale.before, scale.after, laid)


def _digits(step: float) -> int:
    """Behind the point, so that ticks of a step can be told apart."""
    digits = 0
    while digits < 9 and abs(step * 10**digits - round(step * 10**digits)) > 1e-6:
        digits += 1
    return digits
