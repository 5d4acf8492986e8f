"""The sampling state of one answer: its random stream, what it counts, what it must not draw yet, its guide."""

from __future__ import annotations

from collections.abc import Sequence as Rows

import numpy as np

from .arrays import Float32Array, Int64Array
from .guide_state import GuideState
from .guides import CompiledGuide
from .penalties import LogitBias, Penalties
from .request import SamplingParams

__all__ = ["SamplingState"]


class SamplingState:
    """How one answer's tokens are drawn. Every token takes one number from a random stream of its own, unless it is greedy.

    Args:
        params: as the client gave them, checked.
        prompt_ids: the prompt; the repetition penalty counts its tokens.
        index: which of a request's answers it is; each has a stream of its own, given by the seed and this.
        eos_ids: end-of-sequence tokens, which ``min_tokens`` keeps away.
        guide: what the text must look like; it may still be in the making.
    """

    def __init__(
        self,
        params: SamplingParams,
        prompt_ids: Rows[int] = (),
        *,
        index: int = 0,
        eos_ids: frozenset[int] = frozenset(),
        guide: CompiledGuide | None = None,
    ) -> None:
        self.params = params
        self.greedy = params.temperature == 0
        self._random = np.random.Generator(np.random.Philox(np.random.SeedSequence(params.seed, spawn_key=(index,))))
        self._prompt = np.unique(np.array(prompt_ids if params.repetition_penalty != 1 else (), dtype=np.int64))
        self._penalties = Penalties(params, self._prompt) if Penalties.wanted(params) else None
        self._bias = LogitBias(params.logit_bias) if params.logit_bias else None
        self._eos_ids = eos_ids
        ends = set(params.stop_token_ids) | (set() if params.ignore_eos else eos_ids)
        self._ends = np.array(sorted(ends), dtype=np.int64)
        # A guide offers end-of-sequence tokens where its text may end, and ends the answer itself where it must.
        self._never = np.array(sorted(eos_ids if guide and params.ignore_eos else ()), dtype=np.int64)
        self._compiled = guide
        self._guide: GuideState | None = None
        self._generated = 0

    def for_answer(self, index: int) -> SamplingState:
        """The state of another answer to the same prompt, before its first token."""
        return SamplingState(self.params, self._prompt.tolist(), index=index, eos_ids=self._eos_ids, guide=self._compiled)

    def ready(self, wait_s: float = 0) -> bool:
        """Whether tokens can be chosen: False while the guide is being compiled.

        Args:
            wait_s: seconds to wait for it, at most.
        """
        return self._compiled is None or self._compiled.wait(wait_s)

    def start(self) -> None:
        """Begin to follow the guide, if there is one, once it is :meth:`ready`. The first token does so as well, and waits.

        Raises:
            RequestError: ``invalid_request``, the guide cannot be compiled.
        """
        if self._guide is None and self._compiled is not None:
            self._guide = self._compiled.start()

    @property
    def finished(self) -> bool:
        """Whether the guide allows nothing to follow."""
        return self._guide is not None and self._guide.finished

    def uniform(self) -> float:
        """The next number of the random stream, at least 0 and below 1."""
        return self._random.random()

    def commit(self, token: int) -> None:
        """The token was drawn and belongs to the answer now.

        Raises:
            RequestError: the guide does not allow it.
        """
        self._generated += 1
        if self._penalties is not None:
            self._penalties.count(token)
        if self._guide is not None:
            self._guide.commit(token)

    def candidates(self, row: Float32Array, scratch: Float32Array) -> tuple[Float32Array, Int64Array | None]:
        """The logits that the next token is chosen by, and their token ids; None for those of the whole vocabulary.

        Args:
            row: float32 [V] logits, left as they are.
            scratch: float32 [V], may be overwritten and returned.

        Raises:
            RequestError: the guide cannot go on.
        """
        self.start()
        banned = self._banned()
        banned = banned[banned < len(row)]  # a tokenizer may know more tokens than the model
        ids = None if self._guide is None else _without(self._guide.allowed(len(row)), banned)
        if self._penalties is not None or self._bias is not None or (ids is None and len(banned)):
            np.copyto(scratch, row)
            row = scratch
        if self._penalties is not None:
            self._penalties.apply(row)
        if self._bias is not None:
            self._bias.apply(row)
        if ids is not None:
            return row[ids], ids
        if len(banned):
            row[banned] = -np.inf
        return row, None

    def _banned(self) -> Int64Array:
        """What must not be drawn now."""
        if self._generated >= self.params.min_tokens:
            return self._never
        return np.union1d(self._ends, self._never) if len(self._never) else self._ends


def _without(allowed: Int64Array, banned: Int64Array) -> Int64Array:
    """Allowed ids that are not banned, or all of them where nothing else is left: the text must fit the guide."""
    if not len(banned):
        return allowed
    kept = np.setdiff1d(allowed, banned, assume_unique=True)
    return kept if len(kept) else allowed
