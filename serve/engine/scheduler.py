"""The scheduler: which sequences run in the next step, and who gets pages. Arrival order, no preemption.

A sequence is admitted when a batch slot and all pages that it may ever need are free; from then on
it always can finish. The head of the waiting line is never overtaken, so nobody starves.
"""

from __future__ import annotations

import logging
from collections import deque

from .batch import Run, StepBatch, make_batch
from .pool import Grant, PagePool
from .sequence import Sequence

__all__ = ["Scheduler"]

_log = logging.getLogger(__name__)


class Scheduler:
    """Continuous batching over one page pool.

    Args:
        pool: the pages to admit by.
        page_tokens: tokens a page holds.
        max_batch_size: sequences admitted at a time.
        max_num_tokens: tokens a step may run. Sequences that decode come first, one token each; what is
            left goes to prompts, in chunks where they are larger.
    """

    def __init__(self, pool: PagePool, *, page_tokens: int, max_batch_size: int, max_num_tokens: int) -> None:
        self.pool = pool
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self._page_tokens = page_tokens
        self._max_batch_size = max_batch_size
        self._max_num_tokens = max_num_tokens

    def pages_for(self, sequence: Sequence) -> int:
        """Pages that hold every token the sequence may ever cache."""
        return -(-sequence.cache_tokens // self._page_tokens)

    @property
    def usable_tokens(self) -> int:
        """Tokens that the pages hold which are free or which running sequences will give back.

        Not simply all but the quarantined: a page that a fault lost is none that anybody may wait for.
        """
        held = sum(len(sequence.grants) for sequence in self.running)
        return (self.pool.free + held) * self._page_tokens

    def hopeless(self) -> list[Sequence]:
        """Waiting sequences that could not run even alone: they would block the line for ever."""
        usable = self.usable_tokens
        return [sequence for sequence in self.waiting if sequence.cache_tokens > usable]

    def add(self, sequence: Sequence) -> None:
        """Put a sequence at the end of the waiting line."""
        self.waiting.append(sequence)

    def schedule(self) -> tuple[StepBatch, list[Sequence]]:
        """Admit what fits and choose the tokens of the next step; computes nothing and changes no token.

        Returns:
            The batch (empty when there is nothing to run) and the sequences admitted now.
        """
        budget = self._max_num_tokens
        runs: list[Run] = []
        for sequence in sorted(self.running, key=lambda sequence: sequence.remaining > 1):
            budget -= _run(sequence, budget, runs)
        admitted = []
        while budget and self._admit():
            admitted.append(self.running[-1])
            budget -= _run(self.running[-1], budget, runs)
        return make_batch(runs), admitted

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence out, waiting or running, and give its pages back."""
        self._remove(sequence)
        self._report(sequence, self.pool.release(sequence.grants))
        sequence.grants = []

    def condemn(self, sequence: Sequence) -> None:
        """Take a sequence out and quarantine the pages that only it still rightfully holds."""
        self._remove(sequence)
        self._report(sequence, self.pool.quarantine(sequence.grants))
        sequence.grants = []

    def check_integrity(self) -> None:
        """Check the pool against the tables of all sequences.

        Raises:
            ServeError: naming every violation.
        """
        self.pool.check_integrity(sequence.grants for sequence in (*self.running, *self.waiting))

    def _admit(self) -> bool:
        if not self.waiting or len(self.running) >= self._max_batch_size:
            return False
        grants = self.pool.grant(self.pages_for(self.waiting[0]))
        if grants is None:
            return False
        sequence = self.waiting.popleft()
        sequence.grants = grants
        self.running.append(sequence)
        return True

    def _report(self, sequence: Sequence, stale: list[Grant]) -> None:
        for page, tag in stale:
            _log.error(
                "request %s ended, page %d: its tag %d was withdrawn while it held the page; the page is left as it is",
                sequence.request_id,
                page,
                tag,
            )

    def _remove(self, sequence: Sequence) -> None:
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)


def _run(sequence: Sequence, budget: int, runs: list[Run]) -> int:
    """Add as much of a sequence as the budget allows; returns the tokens taken."""
    count = min(budget, sequence.remaining)
    if count:
        runs.append((sequence, count))
    return count
