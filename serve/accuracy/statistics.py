"""What an evaluation's items say, and how surely: standard errors, and paired differences with 95 % intervals.

Items are taken as drawn independently from all questions of their kind. An interval of a difference is over the same items
answered twice, so that what makes a question hard for both falls out of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .records import Difference

__all__ = ["Estimate", "perplexity", "perplexity_difference", "ratio", "share", "share_difference"]

_CONFIDENCE = 0.95

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A value and its standard error; None where one item cannot tell."""

    value: float
    stderr: float | None


def share(scores: Sequence[float]) -> Estimate:
    """The mean of scores from 0 to 1. For right and wrong its error is the binomial one, √(p(1 − p)/(n − 1))."""
    values = np.asarray(scores, dtype=np.float64)
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return Estimate(float(values.mean()), error)


def ratio(sums: Sequence[float] | _Floats, counts: Sequence[int]) -> Estimate:
    """A sum over all tokens by their number, where tokens of one item stand or fall together: items are the sample."""
    tops, bottoms = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    value = float(tops.sum() / bottoms.sum())
    return Estimate(value, _ratio_error(tops - value * bottoms, bottoms))


def perplexity(logprobs: Sequence[float], tokens: Sequence[int]) -> Estimate:
    """exp(−mean log-probability a token). The error is that of the mean, which is near normal, carried through exp."""
    mean = ratio(logprobs, tokens)
    value = math.exp(-mean.value)
    return Estimate(value, None if mean.stderr is None else value * mean.stderr)


def share_difference(scores: Sequence[float], base: Sequence[float]) -> Difference:
    """Subject minus base, of shares over the same items.

    For right and wrong the interval is Bonett and Price's (2012): only items on which the two part say anything, and with one
    added to each side of them it is not empty when there are none, as Wald's would be. For other scores it is Student's t.
    """
    ours, theirs = np.asarray(scores, dtype=np.float64), np.asarray(base, dtype=np.float64)
    value = float(ours.mean() - theirs.mean())
    if bool(np.isin(ours, (0, 1)).all() and np.isin(theirs, (0, 1)).all()):
        n = len(ours) + 2
        gained, lost = (float((ours > theirs).sum()) + 1) / n, (float((ours < theirs).sum()) + 1) / n
        centre, half = gained - lost, _normal() * math.sqrt((gained + lost - (gained - lost) ** 2) / n)
    elif len(ours) > 1:
        centre = value
        half = _student(len(ours) - 1) * float((ours - theirs).std(ddof=1)) / math.sqrt(len(ours))
    else:
        centre, half = 0.0, 1.0
    low, high = max(-1.0, centre - half), min(1.0, centre + half)
    return Difference(base=float(theirs.mean()), value=value, low=min(low, value), high=max(high, value))


def perplexity_difference(logprobs: Sequence[float], base: Sequence[float], tokens: Sequence[int]) -> Difference | None:
    """Subject minus base, of perplexities over the same tokens; the interval is of their ratio, in log space.

    Returns:
        None for a single item, which says nothing of how items vary.
    """
    ours, theirs = np.asarray(logprobs, dtype=np.float64), np.asarray(base, dtype=np.float64)
    change = ratio(theirs - ours, tokens)  # of log perplexity
    if change.stderr is None:
        return None
    before = perplexity(base, tokens).value
    half = _student(len(ours) - 1) * change.stderr
    low, value, high = (before * math.expm1(change.value + part) for part in (-half, 0.0, half))
    return Difference(base=before, value=value, low=low, high=high)


def _ratio_error(residuals: _Floats, counts: _Floats) -> float | None:
    n = len(residuals)
    if n < 2:
        return None
    return math.sqrt(n / (n - 1) * float((residuals**2).sum())) / float(counts.sum())


def _normal() -> float:
    from scipy.stats import norm

    return float(norm.ppf((1 + _CONFIDENCE) / 2))


def _student(freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf((1 + _CONFIDENCE) / 2, freedom))
