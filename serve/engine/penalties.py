"""What a request's own parameters change in its logits: penalties for tokens that were there already, and a bias.

Only the tokens concerned are touched, so the cost goes with the length of the text and not with the vocabulary.
"""

from __future__ import annotations

import numpy as np

from .arrays import Float32Array, Float64Array, Int64Array
from .request import SamplingParams

__all__ = ["LogitBias", "Penalties"]

_LARGEST = float(np.finfo(np.float32).max)
_ROOM = 256


class Penalties:
    """Repetition, presence and frequency penalties of one answer.

    Args:
        params: the penalties.
        prompt_ids: distinct tokens of the prompt, where the repetition penalty counts them.
    """

    def __init__(self, params: SamplingParams, prompt_ids: Int64Array) -> None:
        self._repetition = params.repetition_penalty
        self._presence = params.presence_penalty
        self._frequency = params.frequency_penalty
        self._places = {token: place for place, token in enumerate(prompt_ids.tolist())}
        self._ids = np.concatenate((prompt_ids, np.zeros(_ROOM, dtype=np.int64)))
        self._times = np.zeros(len(self._ids))

    @staticmethod
    def wanted(params: SamplingParams) -> bool:
        """Whether any of the three is not neutral."""
        return params.repetition_penalty != 1 or params.presence_penalty != 0 or params.frequency_penalty != 0

    def count(self, token: int) -> None:
        """The token was generated."""
        place = self._places.setdefault(token, len(self._places))
        if place == len(self._ids):
            self._ids = np.concatenate((self._ids, np.zeros_like(self._ids)))
            self._times = np.concatenate((self._times, np.zeros_like(self._times)))
        self._ids[place] = token
        self._times[place] += 1

    def apply(self, row: Float32Array) -> None:
        """Change float32 [V] logits in place: the repetition penalty first, then the two others."""
        seen = len(self._places)
        ids, times = self._ids[:seen], self._times[:seen]
        values = row[ids].astype(np.float64)
        values = np.where(values > 0, values / self._repetition, values * self._repetition)
        _store(row, ids, values - self._presence * (times > 0) - self._frequency * times)


class LogitBias:
    """What is added to the logits of some tokens.

    Args:
        bias: by token id.
    """

    def __init__(self, bias: dict[int, float]) -> None:
        self._ids = np.array(list(bias), dtype=np.int64)
        self._values = np.array(list(bias.values()), dtype=np.float64)

    def apply(self, row: Float32Array) -> None:
        """Change float32 [V] logits in place."""
        _store(row, self._ids, row[self._ids] + self._values)


def _store(row: Float32Array, ids: Int64Array, values: Float64Array) -> None:
    """Put values into a row. A finite logit stays one, and a token that is impossible stays so."""
    row[ids] = np.where(np.isneginf(row[ids]), -np.inf, np.clip(values, -_LARGEST, _LARGEST))
