"""A guide at work: which tokens may come next in one answer, and whether it has come to its end."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import numpy as np

from roundhouse.errors import RequestError

from .arrays import Int64Array
from .guide_worker import Job, Worker

if TYPE_CHECKING:
    from llguidance import LLMatcher

__all__ = ["GuideState", "mask_of", "reason_of"]

_LONGEST_REASON = 300
_SHARE_S = 0.005
"""Seconds of processor time that a token's mask may take on average; all answers of a batch wait for the slowest."""
_SAVED_S = 0.2
"""What an answer can save of its share for a token that needs more."""


class GuideState:
    """Follows one answer. The mask for the next token is computed while the model runs.

    Args:
        matcher: at the beginning of the text; nobody else uses it.
        mask: the first token's, as :func:`mask_of` gives it.
        worker: computes the others.
    """

    def __init__(self, matcher: LLMatcher, mask: bytes, worker: Worker) -> None:
        self._matcher = matcher
        self._mask = mask
        self._worker = worker
        self._job: Job[tuple[bytes, float]] | None = None
        self._saved_s = _SAVED_S
        self.finished = False
        """Whether nothing may follow."""

    def allowed(self, vocab: int) -> Int64Array:
        """The token ids below ``vocab`` that may come next, ascending; at least one.

        Raises:
            RequestError: ``invalid_request``, the guide has become too complex, or the text can go on with no token.
        """
        if self._job is not None:
            try:
                self._mask, seconds = self._worker.finish(self._job)
            except TimeoutError as error:
                raise _stuck(f"its next token takes {error}") from None
            except (ValueError, RuntimeError) as error:
                raise _stuck(str(error)) from None
            self._job = None
            self._saved_s = min(self._saved_s + _SHARE_S, _SAVED_S) - seconds
            if self._saved_s < 0:
                raise _stuck(f"its tokens take more than {_SHARE_S:g} s of processor time each")
        bits = np.unpackbits(np.frombuffer(self._mask, dtype=np.uint8), bitorder="little")[:vocab]
        ids = np.flatnonzero(bits.view(np.bool_))
        if not len(ids):
            raise _stuck("no token of this model can continue the text")
        return ids

    def commit(self, token: int) -> None:
        """The answer goes on with one of the tokens that were :meth:`allowed`.

        Raises:
            RequestError: ``internal``, it is none of them; ``invalid_request``, the guide has become too complex.
        """
        if not self._mask[token >> 3] >> (token & 7) & 1:
            raise RequestError("internal", f"the guide does not allow token {token}")
        if not self._matcher.consume_token(token):
            raise _stuck(reason_of(self._matcher))
        self.finished = self._matcher.is_stopped()
        if not self.finished:
            self._job = self._worker.submit(lambda: _timed_mask(self._matcher))


def mask_of(matcher: LLMatcher) -> bytes:
    """One bit per token id, the lowest first: whether it may come next.

    Raises:
        ValueError: the guide is too complex, or no text fits it.
    """
    mask = matcher.compute_bitmask()
    if matcher.is_error():
        raise ValueError(reason_of(matcher))
    return mask


def _timed_mask(matcher: LLMatcher) -> tuple[bytes, float]:
    began = time.thread_time()
    return mask_of(matcher), time.thread_time() - began


def reason_of(matcher: LLMatcher) -> str:
    """Why a matcher has failed, in one line: its library's message without positions in its own grammar."""
    text = matcher.get_error()
    if text.startswith("panic"):
        return "it is too large"
    if text.startswith("NoExtension"):
        return "no text fits it"
    text = text.split("\n<", 1)[0]  # a backtrace, or a note about verbosity
    text = re.sub(r"\n +\d+ \|.*", "", text, flags=re.DOTALL)  # an excerpt of the grammar
    _, _, reason = text.rpartition("error: ")  # a regular expression's errors repeat it first
    return " ".join(re.sub(r"^at \d+\(\d+\): ", "", reason).split())[:_LONGEST_REASON]


def _stuck(reason: str) -> RequestError:
    return RequestError("invalid_request", f"the guide cannot be followed any further: {reason}")
