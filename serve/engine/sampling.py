"""Choosing the next tokens of a batch. Rows are independent: a seed gives the same draws whatever the batch.

One pass over all rows finds the greedy tokens and the rows that are no numbers. Every other row is then worked on by
itself, in the processor's cache: its arithmetic depends on nothing but its own logits, so it is the same to the last bit
alone and among others.
"""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass

import numpy as np

from roundhouse.errors import RequestError

from .arrays import Float32Array
from .filters import draw
from .logprobs import token_logprob
from .request import TokenLogprob
from .sampling_state import SamplingState

__all__ = ["Choice", "choose_tokens"]


@dataclass(frozen=True)
class Choice:
    """The next token of one answer."""

    token: int
    logprob: TokenLogprob | None = None
    """When the request asks for log-probabilities."""


def choose_tokens(logits: Float32Array, states: Rows[SamplingState]) -> list[Choice | RequestError]:
    """The next token of each row, or why that row has none.

    Args:
        logits: float32 [R, V], left as they are.
        states: R states. Those that are not greedy take a random number; nothing else of them changes before
            :meth:`SamplingState.commit`.
    """
    if not states:
        return []
    best = logits.argmax(axis=1)  # a NaN, where there is one
    finite = np.isfinite(logits[np.arange(len(states)), best])
    scratch = _Scratch(logits.shape[1])
    with np.errstate(over="ignore"):  # to −inf, of weight 0
        return [
            _choose(logits[row], state, int(best[row]), scratch) if finite[row] else _not_finite()
            for row, state in enumerate(states)
        ]


class _Scratch:
    """Two rows to work in, shared by all rows of a batch."""

    def __init__(self, vocab: int) -> None:
        self.logits = np.empty(vocab, dtype=np.float32)
        self.weights = np.empty(vocab, dtype=np.float32)


def _choose(row: Float32Array, state: SamplingState, best: int, scratch: _Scratch) -> Choice | RequestError:
    try:
        values, ids = state.candidates(row, scratch.logits)
    except RequestError as error:
        return error
    place = best if values is row else int(values.argmax())
    top = values[place]
    if not np.isfinite(top):
        return RequestError("internal", "the model's logits leave no token that may be drawn")
    if not state.greedy:
        place = draw(values, top, state.params, state.uniform(), scratch.weights)
    token = place if ids is None else int(ids[place])
    count = state.params.logprobs
    return Choice(token, None if count is None else token_logprob(row, row[best], token, count, scratch.weights))


def _not_finite() -> RequestError:
    return RequestError("internal", "the model's logits are not finite numbers")
