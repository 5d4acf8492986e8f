"""Which tokens of one row are kept, and the draw among them. Nothing here can see the rest of a batch.

A vocabulary is never sorted: what cannot be among the kept tokens is left out by a bound that two passes give, and only
the few others are compared. The results are those of sorting everything, with equal tokens in the order of their ids.
"""

from __future__ import annotations

import numpy as np

from .arrays import Float32Array, Int64Array
from .request import SamplingParams

__all__ = ["draw", "largest"]

_BLOCK = 128
"""Tokens that are summed or compared as one where single ones are not needed."""
_FEW = 256
"""Weights that are sorted rather than halved once more."""
_USUAL = 2048
"""Tokens that usually hold top_p together."""
_COLDEST, _HOTTEST = 1e-30, 1e30
"""Temperatures beyond these would not be finite numbers other than 0 in float32; they draw like these."""


def draw(values: Float32Array, top: np.float32, params: SamplingParams, uniform: float, scratch: Float32Array) -> int:
    """The place of the token that a uniform number stands for.

    The temperature comes first, then top_k, then top_p of what that left, then min_p. The likeliest token is always kept.

    Args:
        values: float32 [N] logits, the largest of them finite; −inf is never drawn.
        top: the largest.
        params: what to keep.
        uniform: at least 0 and below 1.
        scratch: float32 [N or more], overwritten.
    """
    places = None
    if 0 < params.top_k < len(values):
        places = largest(values, params.top_k)
        values = values[places]
    weights = scratch[: len(values)]
    # The largest is subtracted first: a tiny temperature then gives zeros, never inf − inf.
    np.subtract(values, top, out=weights)
    if params.temperature != 1:
        np.divide(weights, np.float32(min(max(params.temperature, _COLDEST), _HOTTEST)), out=weights)
    np.exp(weights, out=weights)
    if params.top_p < 1 or params.min_p > 0:
        kept = _nucleus(weights, params.top_p) if params.top_p < 1 else np.flatnonzero(weights >= params.min_p)
        if params.top_p < 1 and params.min_p > 0:
            kept = kept[weights[kept] >= params.min_p]
        places = kept if places is None else places[kept]
        weights = weights[kept]
    place = _pick(weights, uniform)
    return place if places is None else int(places[place])


def largest(values: Float32Array, count: int) -> Int64Array:
    """The places of the ``count`` largest of float32 [N], in order of place; of equal ones the first."""
    if count >= len(values):
        return np.arange(len(values))
    blocks = np.arange(0, len(values), _BLOCK)
    if count > len(blocks):
        return _first(values, np.partition(values, len(values) - count)[len(values) - count], count)
    # At least ``count`` values reach what the largest values of ``count`` blocks reach.
    maxima = np.maximum.reduceat(values, blocks)
    places = np.flatnonzero(values >= np.partition(maxima, len(maxima) - count)[len(maxima) - count])
    window = values[places]
    return places[_first(window, np.partition(window, len(window) - count)[len(window) - count], count)]


def _nucleus(weights: Float32Array, top_p: float) -> Int64Array:
    """The places of the fewest weights that hold ``top_p`` of all, in order of place; the largest weight is 1."""
    total = float(weights.sum())
    target = top_p * total
    for size in (_USUAL, len(weights)):
        # Weights below this hold less than 1 − top_p of all if there are no more than that many of them.
        places = np.flatnonzero(weights >= (1 - top_p) * total / size)
        candidates = weights[places]
        if float(candidates.sum()) >= target:
            break
    above, mass, window = 0, 0.0, candidates.copy()  # larger weights than the window's, all of which are needed
    while len(window) > _FEW:
        half = len(window) // 2
        window.partition(half)
        upper = window[half:]
        upper_mass = float(upper.sum())
        if mass + upper_mass >= target:
            window = upper
        else:
            above, mass, window = above + len(upper), mass + upper_mass, window[:half]
    descending = np.sort(window)[::-1]
    before = mass + np.cumsum(descending, dtype=np.float64) - descending
    needed = max(1, int(np.count_nonzero(before < target)))
    return places[_first(candidates, descending[needed - 1], above + needed)]


def _first(values: Float32Array, cutoff: np.float32, count: int) -> Int64Array:
    """The places of ``count`` values that reach the cutoff: those above it, and the first ones equal to it."""
    places = np.flatnonzero(values >= cutoff)
    if len(places) == count:
        return places
    equal = np.flatnonzero(values[places] == cutoff)
    return np.delete(places, equal[len(equal) - (len(places) - count) :])


def _pick(weights: Float32Array, uniform: float) -> int:
    """The place where the running sum of the weights passes that part of their sum. A weight of 0 is never picked."""
    blocks = np.arange(0, len(weights), _BLOCK)
    sums = np.cumsum(np.add.reduceat(weights, blocks), dtype=np.float64)
    target = min(uniform * sums[-1], np.nextafter(sums[-1], 0))
    block = int(np.searchsorted(sums, target, side="right"))
    inside = weights[block * _BLOCK : (block + 1) * _BLOCK]
    before = sums[block - 1] if block else 0.0
    place = int(np.searchsorted(np.cumsum(inside, dtype=np.float64), target - before, side="right"))
    if place == len(inside):  # the block's own sum was rounded up
        place = int(np.flatnonzero(inside)[-1])
    return block * _BLOCK + place
