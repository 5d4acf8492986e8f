"""How many times as fast, and how sure: ratios of medians over repeats, with bootstrap intervals.

The interval is the percentile bootstrap's: a median is too rough a statistic for BCa's jackknife. Few repeats bound what any
interval of medians can promise, whatever the bootstrap is asked for: all resamples lie between the extremes, and the extremes
hold the true ratio in no more than ``1 - 2 / C(n + m, n)`` of all cases (``1 - 2 ** (1 - n)`` of pairs). ``confidence`` is
that bound where it is below 95%: three repeats against three make 90% at best, three pairs 75%. Of pairs more can be said:
how often their median lies between two of their ratios is a matter of counting (the sign test's). So the bootstrap's ends are
moved outwards to the next ratios that were measured, and ``confidence`` is what these hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from .resampling import ends_of_medians, ends_of_ratios

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["CONFIDENCE", "LEAST_REPEATS", "RESAMPLES", "Ratio", "paired_ratio_intervals", "ratio_interval", "ratio_intervals"]

CONFIDENCE = 0.95
LEAST_REPEATS = 3
"""Of both sides, for an interval."""
RESAMPLES = 9999
_ROUNDING = 1e-12
"""An end that is a measured ratio may come out of an interpolation a bit beside it."""


@dataclass(frozen=True)
class Ratio:
    """One quantity of a run over the same of its base."""

    value: float | None
    """Of medians; of pairs: the median of their ratios. None where a side has none, or was zero."""
    low: float | None
    high: float | None
    """Ends of the interval; None where there are too few repeats for one."""
    confidence: float | None
    """How often such an interval holds the true ratio."""
    method: Literal["bootstrap", "paired bootstrap", "none"]
    repeats: int
    """Of the side with fewer."""
    why: str | None = None
    """Why there is no ratio or no interval."""

    @property
    def differs(self) -> bool:
        """Whether the interval leaves 1 out."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def ratio_interval(base: Sequence[float], other: Sequence[float], *, paired: bool, seed: int = 0) -> Ratio:
    """``other`` over ``base``.

    Args:
        base: one value for each repeat.
        other: likewise; of pairs, in the order of ``base``.
        paired: whether the same repeat of both was measured side by side.
        seed: of the resampling; equal ones give equal intervals.

    Raises:
        ValueError: pairs of different lengths.
    """
    known = _without_interval(base, other, paired=paired)
    if known is not None:
        return known
    import numpy as np
    from scipy.stats import bootstrap

    def over(above: Floats, below: Floats, axis: int = -1) -> Floats:
        return np.asarray(np.median(above, axis=axis) / np.median(below, axis=axis))

    def middle(ratios: Floats, axis: int = -1) -> Floats:
        return np.asarray(np.median(ratios, axis=axis))

    first, second = np.asarray(base, dtype=np.float64), np.asarray(other, dtype=np.float64)
    samples, statistic = ((second / first,), middle) if paired else ((second, first), over)
    found = bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return _ratio(base, other, float(found.low), float(found.high), paired=paired)


def ratio_intervals(base: Sequence[float], others: Sequence[Sequence[float]], *, seed: int = 0) -> list[Ratio]:
    """Each of ``others`` over ``base``, unpaired: as :func:`ratio_interval`, but quick for hundreds of them."""
    found = [_without_interval(base, other, paired=False) for other in others]
    open_ = [number for number, ratio in enumerate(found) if ratio is None]
    for alike in _of_equal_length(open_, others):
        ends = ends_of_ratios(base, [others[number] for number in alike], CONFIDENCE, seed=seed)
        for number, (low, high) in zip(alike, ends, strict=True):
            found[number] = _ratio(base, others[number], low, high, paired=False)
    return [ratio for ratio in found if ratio is not None]


def paired_ratio_intervals(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], *, seed: int = 0) -> list[Ratio]:
    """Of each pair of runs that took turns the second over the first: as :func:`ratio_interval`, but quick for many of them.

    Args:
        pairs: values of the base and of the other, those of the same repeat at the same place.
        seed: of the resampling.

    Raises:
        ValueError: pairs of different lengths.
    """
    found = [_without_interval(base, other, paired=True) for base, other in pairs]
    open_ = [number for number, ratio in enumerate(found) if ratio is None]
    for alike in _of_equal_length(open_, [other for _, other in pairs]):
        ratios = [[above / below for below, above in zip(*pairs[number], strict=True)] for number in alike]
        for number, (low, high) in zip(alike, ends_of_medians(ratios, CONFIDENCE, seed=seed), strict=True):
            found[number] = _ratio(*pairs[number], low, high, paired=True)
    return [ratio for ratio in found if ratio is not None]


def _of_equal_length(numbers: Sequence[int], values: Sequence[Sequence[float]]) -> Iterator[list[int]]:
    """Numbers of values, those of equally many together: they are resampled in one go."""
    for length in sorted({len(values[number]) for number in numbers}):
        yield [number for number in numbers if len(values[number]) == length]


def _without_interval(base: Sequence[float], other: Sequence[float], *, paired: bool) -> Ratio | None:
    """The answer where there cannot be an interval; None where there can."""
    if paired and len(base) != len(other):
        raise ValueError(f"{len(base)} repeats cannot be paired with {len(other)}")
    repeats = min(len(base), len(other))
    if not repeats:
        return Ratio(None, None, None, None, "none", 0, "one side has no value")
    if not all(math.isfinite(value) and value > 0 for value in (*base, *other)):
        return Ratio(None, None, None, None, "none", repeats, "a repeat measured nothing")
    if repeats < LEAST_REPEATS:
        why = f"an interval takes {LEAST_REPEATS} repeats of both, and there {'is' if repeats == 1 else 'are'} {repeats}"
        return Ratio(_value(base, other, paired=paired), None, None, None, "none", repeats, why)
    return None


def _ratio(base: Sequence[float], other: Sequence[float], low: float, high: float, *, paired: bool) -> Ratio:
    if paired:
        low, high, held = _outwards([above / below for above, below in zip(other, base, strict=True)], low, high)
    else:
        held = 1 - 2 / math.comb(len(base) + len(other), len(base))
    return Ratio(
        value=_value(base, other, paired=paired),
        low=low,
        high=high,
        confidence=min(CONFIDENCE, held),
        method="paired bootstrap" if paired else "bootstrap",
        repeats=min(len(base), len(other)),
    )


def _outwards(ratios: Sequence[float], low: float, high: float) -> tuple[float, float, float]:
    """The measured ratios next to an interval's ends, not inside of it, and how often such places hold the true ratio."""
    low = max((ratio for ratio in ratios if ratio <= low * (1 + _ROUNDING)), default=min(ratios))
    high = min((ratio for ratio in ratios if ratio >= high * (1 - _ROUNDING)), default=max(ratios))
    below, above = (
        sum(ratio < low * (1 - _ROUNDING) for ratio in ratios),
        sum(ratio > high * (1 + _ROUNDING) for ratio in ratios),
    )
    count = len(ratios)
    return low, high, sum(math.comb(count, lower) for lower in range(below + 1, count - above)) / 2**count


def _value(base: Sequence[float], other: Sequence[float], *, paired: bool) -> float:
    if paired:
        return median(above / below for above, below in zip(other, base, strict=True))
    return median(other) / median(base)
