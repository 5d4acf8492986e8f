"""How many times as fast, and how sure: ratios of medians over repeats, with bootstrap intervals.

The interval is the percentile bootstrap's: a median is too rough a statistic for BCa's jackknife. Few repeats bound what any
interval of medians can promise, whatever the bootstrap is asked for: all resamples lie between the extremes, and the extremes
hold the true ratio in no more than ``1 - 2 / C(n + m, n)`` of all cases (``1 - 2 ** (1 - n)`` of pairs). ``confidence`` is that
bound where it is below 95%: three repeats against three make 90% at best, three pairs 75%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["CONFIDENCE", "LEAST_REPEATS", "RESAMPLES", "Ratio", "ratio_interval", "ratio_intervals"]

CONFIDENCE = 0.95
LEAST_REPEATS = 3
"""Of both sides, for an interval."""
RESAMPLES = 9999
_QUICK_RESAMPLES = 2000
"""Where many runs are compared at once."""


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
    """Each of ``others`` over ``base``, unpaired: as :func:`ratio_interval`, but quick for hundreds of them.

    The median of a resample is one of the sorted values, or lies between two: which ones is drawn once for all.
    """
    found = [_without_interval(base, other, paired=False) for other in others]
    open_ = [number for number, ratio in enumerate(found) if ratio is None]
    if open_:
        import numpy as np

        draws = np.random.default_rng(seed)
        below = _resampled_medians(np.asarray(base, dtype=np.float64)[None], draws)
        tails = (50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE))
        for length in sorted({len(others[number]) for number in open_}):
            alike = [number for number in open_ if len(others[number]) == length]
            above = _resampled_medians(np.asarray([others[number] for number in alike], dtype=np.float64), draws)
            lows, highs = np.percentile(above / below, tails, axis=1)
            for number, low, high in zip(alike, lows, highs, strict=True):
                found[number] = _ratio(base, others[number], float(low), float(high), paired=False)
    return [ratio for ratio in found if ratio is not None]


def _resampled_medians(values: Floats, draws: np.random.Generator) -> Floats:
    """Of rows of values (runs, repeats): medians of resamples (runs, resamples), the same draws for every run."""
    import numpy as np

    repeats = values.shape[1]
    drawn = np.sort(draws.integers(0, repeats, (_QUICK_RESAMPLES, repeats)), axis=1)
    ordered = np.sort(values, axis=1)
    return np.asarray((ordered[:, drawn[:, (repeats - 1) // 2]] + ordered[:, drawn[:, repeats // 2]]) / 2)


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
    first, second = len(base), len(other)
    bound = 1 - 2 ** (1 - first) if paired else 1 - 2 / math.comb(first + second, first)
    return Ratio(
        value=_value(base, other, paired=paired),
        low=low,
        high=high,
        confidence=min(CONFIDENCE, bound),
        method="paired bootstrap" if paired else "bootstrap",
        repeats=min(first, second),
    )


def _value(base: Sequence[float], other: Sequence[float], *, paired: bool) -> float:
    if paired:
        return median(above / below for above, below in zip(other, base, strict=True))
    return median(other) / median(base)
