"""With the check on over with it off: ratios within each round, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from guard_episodes import METRICS, OFF, Episode

from roundhouse.build.recipe import Guard

__all__ = ["FEWEST_ROUNDS", "RESOLUTION", "Interval", "Ratios", "conclusion", "interval", "ratios"]

RESOLUTION = 0.005
"""What the bench is to tell apart: half a percent."""
FEWEST_ROUNDS = 6
"""Of fewer than these, not even the least and the most enclose the median 95 times in a hundred."""
_SURE = 0.95
_DRAWS = 10_000


@dataclass(frozen=True)
class Interval:
    """A median, and where it lies with 95 % confidence."""

    median: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def resolved(self) -> bool:
        """Whether it is narrow enough to tell :data:`RESOLUTION` apart."""
        return self.half_width <= RESOLUTION


@dataclass(frozen=True)
class Ratios:
    """One level of the check over none, at one concurrency."""

    level: Guard
    concurrency: int
    rounds: int
    disturbed: int
    """Rounds in which others kept cores busy during one of the two episodes."""
    by_metric: dict[str, Interval]


def interval(values: Sequence[float]) -> Interval:
    """The median of at least :data:`FEWEST_ROUNDS` values, and its bootstrap interval: the same values give the same one."""
    draws = np.random.default_rng(0).choice(np.asarray(values), (_DRAWS, len(values)))
    low, high = np.quantile(np.median(draws, axis=1), [(1 - _SURE) / 2, (1 + _SURE) / 2])
    return Interval(float(np.median(values)), float(low), float(high))


def ratios(episodes: Sequence[Episode], level: Guard, concurrency: int) -> Ratios:
    """Divide each round's episode at a level by the same round's with the check off: what slows a whole round cancels out."""
    on, off = (
        {each.cell.repeat: each for each in episodes if (each.cell.system, each.cell.concurrency) == (system, concurrency)}
        for system in (level, OFF)
    )
    return Ratios(
        level,
        concurrency,
        rounds=len(on),
        disturbed=sum(on[number].cell.noisy or off[number].cell.noisy for number in on),
        by_metric={
            metric: interval([on[number].metrics[metric] / off[number].metrics[metric] for number in sorted(on)])
            for metric in METRICS
        },
    )


def conclusion(found: Ratios) -> str:
    """What may be said of it, and what may not."""
    sure = [
        f"{metric} {_change(each.median)} (95 %: {_change(each.low)} to {_change(each.high)})"
        for metric, each in found.by_metric.items()
        if each.resolved
    ]
    unsure = [f"{metric} ±{each.half_width * 100:.1f} %" for metric, each in found.by_metric.items() if not each.resolved]
    if unsure:
        sure.append(f"cannot resolve {RESOLUTION * 100} % on this machine: {', '.join(unsure)}")
    return f"{found.level}, {found.concurrency} at once: {'; '.join(sure)}"


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.2f} %".replace("-", "−")
