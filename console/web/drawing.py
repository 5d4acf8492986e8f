"""The geometry of small pictures. Lengths are percent of the picture's width, so that it fits any column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Protocol

__all__ = [
    "Memory",
    "MemoryPart",
    "PageShape",
    "Spark",
    "StageBar",
    "memory_picture",
    "page_shapes",
    "spark_line",
    "stage_bars",
]

_LEAST_BAR = 0.6
"""Percent: what took no time is still seen."""


@dataclass(frozen=True)
class MemoryPart:
    """A coloured part of a memory bar."""

    kind: str
    bytes: int
    share: float
    """Of the capacity."""
    x: float
    width: float


@dataclass(frozen=True)
class Memory:
    """A memory bar. Where the parts take more than there is, the bar is as long as they are and says where memory ends."""

    parts: tuple[MemoryPart, ...]
    capacity: int
    edge: float
    """Where the capacity ends."""
    used: int
    excess: int
    free: int


def memory_picture(parts: Iterable[tuple[str, int]], capacity: int) -> Memory:
    """Lay kinds and their bytes out beside one another."""
    named = [(kind, int(size)) for kind, size in parts]
    used = sum(size for _, size in named)
    whole = max(used, capacity, 1)
    starts = accumulate((size for _, size in named), initial=0)
    return Memory(
        tuple(
            MemoryPart(kind, size, size / capacity if capacity else 0.0, _percent(start, whole), _percent(size, whole))
            for (kind, size), start in zip(named, starts, strict=False)
        ),
        capacity,
        _percent(capacity, whole),
        used,
        max(0, used - capacity),
        max(0, capacity - used),
    )


class StageLike(Protocol):
    """What a stage line needs to know of a stage."""

    name: str
    state: str
    """``done``, ``running``, ``failed`` or ``waiting``."""
    what: str
    begins: float | None
    """Seconds after the first stage began; None: not yet."""
    seconds: float | None
    """How long it took, or has taken so far."""
    done: float | None
    """Which part of it is done, from 0 to 1, where that is known."""
    left: float | None
    """Seconds it will probably still take, where that is known."""


@dataclass(frozen=True)
class StageBar:
    """A stage and its bar."""

    stage: StageLike
    x: float
    width: float
    ahead: float
    """Width of what it will probably still take."""


def stage_bars(stages: Sequence[StageLike]) -> list[StageBar]:
    """Lay stages out on one axis of time, with what is probably still to come."""
    ends = [(each.begins or 0) + (each.seconds or 0) + (each.left or 0) for each in stages if each.begins is not None]
    whole = max([*ends, 1e-9])
    bars = []
    for each in stages:
        if each.begins is None:
            bars.append(StageBar(each, 0, 0, 0))
            continue
        width = max(_percent(each.seconds or 0, whole), _LEAST_BAR)
        x = min(_percent(each.begins, whole), 100 - width)
        bars.append(StageBar(each, x, width, min(_percent(each.left or 0, whole), round(100 - x - width, 3))))
    return bars


class CellLike(Protocol):
    """What a page map needs to know of a cell."""

    @property
    def state(self) -> str:
        """``used``, ``shared``, ``quarantined`` or ``free``."""
        ...

    @property
    def text(self) -> str:
        """What to say of it."""
        ...

    @property
    def marked(self) -> bool:
        """Whether it is the one that is asked about."""
        ...


@dataclass(frozen=True)
class PageShape:
    """Cells that follow one another and say the same, drawn as one."""

    state: str
    text: str
    marked: bool
    path: str
    """Of an SVG whose cells take 10 × 10."""


def page_shapes(cells: Iterable[CellLike], across: int) -> list[PageShape]:
    """Lay cells out in rows of so many."""
    alike = groupby(enumerate(cells), key=lambda each: (each[1].state, each[1].text, each[1].marked))
    return [
        PageShape(*what, "".join(f"M{index % across * 10 + 1} {index // across * 10 + 1}h8v8h-8z" for index, _ in of_one))
        for what, of_one in alike
    ]


@dataclass(frozen=True)
class Spark:
    """A sparkline in a box of 100 × 24."""

    points: str
    area: str
    first: float
    last: float
    least: float
    most: float
    last_y: float


def spark_line(values: Sequence[float | None]) -> Spark | None:
    """Draw measurements from the oldest to the newest; None where fewer than two are known. What is missing is skipped."""
    known = [(index, value) for index, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return None
    numbers = [value for _, value in known]
    least, most = min(numbers), max(numbers)
    floor = min(least, 0.0)
    span = (most - floor) or 1.0
    last_index = len(values) - 1
    points = [(round(100 * index / last_index, 2), round(22 - 20 * (value - floor) / span, 2)) for index, value in known]
    line = " ".join(f"{x},{y}" for x, y in points)
    area = f"{points[0][0]},24 {line} {points[-1][0]},24"
    return Spark(line, area, numbers[0], numbers[-1], least, most, points[-1][1])


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 3)
