"""The log-probabilities of a row's tokens, as the model gave them: before temperature, penalties, bias and guide."""

from __future__ import annotations

import math

import numpy as np

from .arrays import Float32Array
from .filters import largest
from .request import TokenLogprob

__all__ = ["token_logprob"]


def token_logprob(row: Float32Array, top: np.float32, token: int, count: int, scratch: Float32Array) -> TokenLogprob:
    """The log-probability of one token, and the ``count`` likeliest ones.

    Tokens of probability 0 are left out; equal ones come in the order of their ids.

    Args:
        row: float32 [V] logits, the largest of them finite.
        top: the largest.
        token: the token that was chosen.
        count: likeliest tokens to name.
        scratch: float32 [V or more], overwritten.
    """
    weights = scratch[: len(row)]
    np.subtract(row, top, out=weights)
    np.exp(weights, out=weights)
    log_sum = float(top) + math.log(float(weights.sum()))
    places = largest(row, count) if count else np.zeros(0, dtype=np.int64)
    places = places[np.argsort(-row[places], kind="stable")]
    named = [(int(place), float(row[place]) - log_sum) for place in places if row[place] > -np.inf]
    return TokenLogprob(token_id=token, logprob=float(row[token]) - log_sum, top=named)
