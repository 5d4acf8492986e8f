"""What a chart shows, before anybody knows where on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Axis", "AxisKind", "ChartPoint", "Rule", "Series"]

AxisKind = Literal["linear", "log2", "time"]
"""``log2``: doubling takes the same room everywhere; ``time``: seconds since 1970, told as UTC."""


@dataclass(frozen=True)
class Axis:
    """One of the two axes."""

    label: str
    """What it counts: ``Concurrency``, ``Output``."""
    unit: str = ""
    """``tokens/s``, ``ms``; empty where the label says it all."""
    kind: AxisKind = "linear"
    from_zero: bool = True
    """Of a linear one: whether zero is on it, so that lengths compare as numbers do."""

    @property
    def text(self) -> str:
        """As it stands at the axis: ``Output, tokens/s``."""
        return f"{self.label}, {self.unit}" if self.unit else self.label


@dataclass(frozen=True)
class ChartPoint:
    """One value of a series."""

    x: float
    y: float | None
    """None: not known, and the line is interrupted."""
    low: float | None = None
    """With :attr:`high`: the interval around it."""
    high: float | None = None
    label: str = ""
    """Written beside it, where not its place but something else tells which one it is: a concurrency, a run."""
    note: str = ""
    """What is to be said of it, on hover and in the table: ``noisy: others kept 1.3 cores busy``."""
    hollow: bool = False
    """Whether it is less sure than others, and drawn so."""
    flag: str = ""
    """What is wrong with it, in words; it is ringed then."""


@dataclass(frozen=True)
class Series:
    """Values that belong together and are joined by a line, in the order given."""

    name: str
    points: Sequence[ChartPoint]
    look: int | None = None
    """From 0: colour, mark and dash; None: its place among the series. For one that must look alike in several charts."""


@dataclass(frozen=True)
class Rule:
    """A level across the whole chart: a baseline, a limit."""

    y: float
    label: str
