"""Choosing tokens from logits. Rows are independent: a seed gives the same draws whatever the batch.

Every request that is not greedy owns a random stream and takes one uniform number from it a token.
That number is looked up in the cumulative distribution over the tokens that top-k and top-p keep.
"""

from __future__ import annotations

from collections.abc import Sequence as Rows

import numpy as np

from .arrays import Float32Array, Float64Array, Int64Array
from .request import SamplingParams

__all__ = ["Sampler", "choose_tokens"]


class Sampler:
    """The sampling state of one request."""

    def __init__(self, params: SamplingParams) -> None:
        self.greedy = params.temperature == 0
        self._params = params
        self._random = np.random.Generator(np.random.Philox(params.seed))

    def draw(self, logits: Float32Array) -> int:
        """Draw a token from finite or −inf logits, float32 [V]; takes one uniform number."""
        kept, weights = _filtered(logits, self._params)
        cumulative = np.cumsum(weights)
        place = np.searchsorted(cumulative, self._random.random() * cumulative[-1], side="right")
        return int(kept[min(int(place), len(kept) - 1)])


def choose_tokens(logits: Float32Array, samplers: Rows[Sampler]) -> list[int | None]:
    """The next token of each row; None for a row whose largest logit is not a finite number.

    Args:
        logits: float32 [R, V].
        samplers: R sampling states; each one that is not greedy advances by one draw.
    """
    if not samplers:
        return []
    best = logits.argmax(axis=1)  # a NaN, where there is one
    sane = np.isfinite(logits[np.arange(len(samplers)), best])
    return [
        None if not sane[row] else int(best[row]) if sampler.greedy else sampler.draw(logits[row])
        for row, sampler in enumerate(samplers)
    ]


def _filtered(logits: Float32Array, params: SamplingParams) -> tuple[Int64Array, Float64Array]:
    """Token ids that top-k, then top-p keep, most likely first, and their unnormalized weights.

    The most likely token is always kept. Without a filter the ids stay in their own order.
    """
    vocab = len(logits)
    kept = np.arange(vocab)
    top_k = 0 < params.top_k < vocab
    if top_k:
        kept = np.argpartition(logits, vocab - params.top_k)[vocab - params.top_k :]
    if top_k or params.top_p < 1:
        kept = kept[np.argsort(-logits[kept])]
    # The largest is subtracted first: a tiny temperature then gives zeros, never inf − inf.
    chosen = logits[kept].astype(np.float64)
    weights = np.exp((chosen - chosen.max()) / params.temperature)
    if params.top_p < 1:
        before = np.cumsum(weights) - weights
        inside = int(np.count_nonzero(before < params.top_p * weights.sum()))
        kept, weights = kept[: max(1, inside)], weights[: max(1, inside)]
    return kept, weights
