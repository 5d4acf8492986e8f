"""Bootstrap intervals of medians for hundreds of runs at once.

A resample of sorted values has as its median one of them, or the middle of two: which, is decided by places alone and not by
values. So the chance of each place, or pair of places, is worked out once for all runs of as many repeats; of few repeats every
median that can come is counted out with its chance, and nothing is drawn at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["ends_of_medians", "ends_of_ratios", "median_chances"]

_MOST_COUNTED = 1_000
"""Different values that are counted out; where there may be more, resamples are drawn."""
_RESAMPLES = 2_000
_ROUNDING = 1e-12
"""A sum of chances that should be one of forty may be less."""

Ends = list[tuple[float, float]]


def ends_of_ratios(base: Sequence[float], others: Sequence[Sequence[float]], confidence: float, *, seed: int = 0) -> Ends:
    """Ends of the percentile bootstrap's interval for the median of each of ``others`` over that of ``base``.

    Args:
        base: one value for each repeat.
        others: equally many values each.
        confidence: from 0 to 1.
        seed: of what is drawn.
    """
    import numpy as np

    below, above = np.sort(np.asarray(base, dtype=np.float64)), np.sort(np.asarray(others, dtype=np.float64), axis=1)
    of_below, of_above = median_chances(below.size), median_chances(above.shape[1])
    if len(of_below) * len(of_above) > _MOST_COUNTED:
        draws = np.random.default_rng(seed)
        return _drawn_ends(_drawn_medians(above, draws) / _drawn_medians(below[None], draws), confidence)
    ratios = _medians(above, of_above)[:, :, None] / _medians(below[None], of_below)[:, None, :]
    chances = np.outer(list(of_above.values()), list(of_below.values())).ravel()
    return _counted_ends(ratios.reshape(len(others), -1), chances, confidence)


def ends_of_medians(values: Sequence[Sequence[float]], confidence: float, *, seed: int = 0) -> Ends:
    """The same for the median of each of ``values``, equally many each."""
    import numpy as np

    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=1)
    chances = median_chances(ordered.shape[1])
    if len(chances) > _MOST_COUNTED:
        return _drawn_ends(_drawn_medians(ordered, np.random.default_rng(seed)), confidence)
    return _counted_ends(_medians(ordered, chances), np.asarray(list(chances.values())), confidence)


@lru_cache(maxsize=64)
def median_chances(count: int) -> dict[tuple[int, int], float]:
    """How likely the median of a resample of so many sorted values lies between two of them, by their places, from 0.

    The two are one and the same where the count is odd, and often where it is even.
    """
    half = (count + 1) // 2

    def at_least(needed: int, places: int) -> float:
        """That so many of the draws are among the first places."""
        share = places / count
        return sum(comb(count, n) * share**n * (1 - share) ** (count - n) for n in range(needed, count + 1))

    chances = {(place, place): at_least(half, place + 1) - at_least(half, place) for place in range(count)}
    if count % 2 == 0:
        last = [((place + 1) ** half - place**half) / count**half for place in range(count)]
        for low in range(count):
            for high in range(low + 1, count):
                # Half of the draws end just at the lower place, and the other half begins at the higher one.
                chances[low, high] = comb(count, half) * last[low] * last[count - 1 - high]
                chances[low, low] -= chances[low, high]
    return chances


def _medians(ordered: Floats, chances: dict[tuple[int, int], float]) -> Floats:
    """Of rows of sorted values (runs, repeats): the medians that resamples can have (runs, chances)."""
    import numpy as np

    low, high = (np.asarray([places[side] for places in chances]) for side in (0, 1))
    return np.asarray((ordered[:, low] + ordered[:, high]) / 2)


def _counted_ends(values: Floats, chances: Floats, confidence: float) -> Ends:
    """From values (runs, values) and how likely each is."""
    import numpy as np

    order = np.argsort(values, axis=1)
    summed = np.cumsum(chances[order], axis=1)
    tail = (1 - confidence) / 2
    places = [np.argmax(summed >= share - _ROUNDING, axis=1) for share in (tail, 1 - tail)]
    rows = np.arange(len(values))
    low, high = (values[rows, order[rows, place]] for place in places)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _drawn_medians(ordered: Floats, draws: np.random.Generator) -> Floats:
    """Of rows of sorted values (runs, repeats): medians of resamples (runs, resamples), the same draws for every run."""
    import numpy as np

    repeats = ordered.shape[1]
    drawn = np.sort(draws.integers(0, repeats, (_RESAMPLES, repeats)), axis=1)
    return np.asarray((ordered[:, drawn[:, (repeats - 1) // 2]] + ordered[:, drawn[:, repeats // 2]]) / 2)


def _drawn_ends(resampled: Floats, confidence: float) -> Ends:
    """From the values of resamples (runs, resamples)."""
    import numpy as np

    tails = (50 * (1 - confidence), 50 * (1 + confidence))
    low, high = np.percentile(resampled, tails, axis=1)
    return list(zip(low.tolist(), high.tolist(), strict=True))
