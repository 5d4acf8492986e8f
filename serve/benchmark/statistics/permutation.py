"""Whether a run is worse than its base: a permutation test over strata, which assumes nothing about how repeats scatter.

If both ran equally fast, any repeat of a stratum could as well have been the other's. The statistic is the mean over strata of
the log ratio of geometric means; its p-value is the part of all exchanges within strata that make it as bad as what was seen,
counted out where there are few enough and drawn where there are not. A stratum is a concurrency, or one pair of repeats where
both were measured side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["Stratum", "Tested", "holm", "is_worse", "least_possible_p"]

Stratum = tuple[Sequence[float], Sequence[float]]
"""What the base and the other measured, all above zero."""

_MOST_COUNTED = 20_000
"""Exchanges that are counted out one by one; of more a sample is drawn."""
_DRAWN = 9999
_ROUNDING = 1e-12
"""Exchanges that make no difference must not fall below what was seen by rounding."""


@dataclass(frozen=True)
class Tested:
    """What came of a test."""

    ratio: float
    """Other over base: the geometric mean over strata."""
    p: float
    """How likely one would see as much of a change to the worse if there were none."""
    least_p: float
    """The smallest that so few repeats can come to, however bad things are."""


def is_worse(strata: Sequence[Stratum], *, more_is_better: bool, seed: int = 0) -> Tested:
    """Test a change to the worse.

    Args:
        strata: at least one, each with at least one value on both sides.
        more_is_better: whether a smaller value is worse, or a greater one.
        seed: of exchanges that are drawn.

    Raises:
        ValueError: there is nothing to test, or a value has no logarithm.
    """
    import numpy as np

    if not strata or not all(base and other for base, other in strata):
        raise ValueError("a stratum without values")
    if not all(math.isfinite(value) and value > 0 for base, other in strata for value in (*base, *other)):
        raise ValueError("a value that is not above zero")
    sign = -1.0 if more_is_better else 1.0
    logs = [(sign * np.log(np.asarray(base)), sign * np.log(np.asarray(other))) for base, other in strata]
    seen = sum(float(other.mean() - base.mean()) for base, other in logs)
    sizes = [(len(base), len(other)) for base, other in strata]
    if _exchanges(sizes) <= _MOST_COUNTED:
        totals = np.zeros(1)
        for base, other in logs:
            totals = np.add.outer(totals, _all_differences(base, other)).ravel()
        p = float(np.mean(totals >= seen - _ROUNDING))
    else:
        draws = np.random.default_rng(seed)
        drawn = np.sum([_drawn_differences(base, other, draws) for base, other in logs], axis=0)
        p = (1 + int(np.count_nonzero(drawn >= seen - _ROUNDING))) / (1 + _DRAWN)
    return Tested(ratio=math.exp(sign * seen / len(strata)), p=p, least_p=least_possible_p(sizes))


def least_possible_p(sizes: Iterable[tuple[int, int]]) -> float:
    """The smallest p-value that repeats can come to, however bad things are.

    Args:
        sizes: of each stratum, how many values the base has and how many the other.
    """
    exchanges = _exchanges(sizes)
    return 1 / exchanges if exchanges <= _MOST_COUNTED else 1 / (1 + _DRAWN)


def holm(values: Sequence[float]) -> list[float]:
    """P-values of several tests, raised (Holm) so that among all of them a false alarm is no likelier than in one."""
    raised, most = [0.0] * len(values), 0.0
    for rank, number in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        most = max(most, min(1.0, values[number] * (len(values) - rank)))
        raised[number] = most
    return raised


def _exchanges(sizes: Iterable[tuple[int, int]]) -> int:
    """In how many ways the values of all strata can be told apart into two sides as large as these."""
    return math.prod(math.comb(base + other, base) for base, other in sizes)


def _all_differences(base: Floats, other: Floats) -> Floats:
    """Of means, for every way to tell the values apart into two sides as large as these."""
    import numpy as np

    values, count = np.concatenate([base, other]), len(other)
    chosen = np.asarray(list(combinations(range(len(values)), count)))
    return _difference(values[chosen].sum(axis=1), float(values.sum()), count, len(base))


def _drawn_differences(base: Floats, other: Floats, draws: np.random.Generator) -> Floats:
    """The same for ways that are drawn at random."""
    import numpy as np

    values, count = np.concatenate([base, other]), len(other)
    mixed = draws.permuted(np.broadcast_to(values, (_DRAWN, len(values))), axis=1)
    return _difference(mixed[:, :count].sum(axis=1), float(values.sum()), count, len(base))


def _difference(sums: Floats, total: float, count: int, rest: int) -> Floats:
    return sums / count - (total - sums) / rest
