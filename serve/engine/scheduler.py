"""The scheduler: which sequences run in the next step, and who gets pages.

Sequences run in the order of priority, then arrival. One is admitted when a batch slot is free and the pool has pages for
the tokens it brings; its answer's pages are granted one by one as it grows. When the pool runs dry, pages that only the
prefix cache holds are given up; when there are none, the last in order is *preempted*: it gives its pages back and waits, at
its old place in the line, to be computed again. The head of the line is never overtaken, so nobody starves.
"""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Iterable

from .batch import StepBatch, make_batch
from .integrity import NO_HISTORY, PageHistory
from .page_holders import PageHolders, page_holders
from .pool import Grant, PagePool
from .prefix_cache import PrefixCache
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
        prefix_reuse: whether full pages are kept to be found again.
        chunked_prompts: whether a prompt may run in parts. If not, it waits for a step that has room for all of it.
        history: hears who got which pages.
    """

    def __init__(
        self,
        pool: PagePool,
        *,
        page_tokens: int,
        max_batch_size: int,
        max_num_tokens: int,
        prefix_reuse: bool = True,
        chunked_prompts: bool = True,
        history: PageHistory = NO_HISTORY,
    ) -> None:
        self.pool = pool
        self.cache = PrefixCache(pool)
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.preemptions = 0
        self._page_tokens = page_tokens
        self._max_batch_size = max_batch_size
        self._max_num_tokens = max_num_tokens
        self._prefix_reuse = prefix_reuse
        self._chunked_prompts = chunked_prompts
        self._history = history
        self._faulty = False

    @property
    def usable_tokens(self) -> int:
        """Tokens that all pages hold which are free or which their holders will give back.

        Not simply all but the quarantined: a page that a fault lost is none that anybody may wait for.
        """
        if not self._faulty:
            return self.pool.pages * self._page_tokens
        held = self.pool.freed_by(grant for grants in self._holders() for grant in grants)
        return (self.pool.free + held) * self._page_tokens

    def hopeless(self) -> list[Sequence]:
        """Waiting sequences that could not run even alone: they would block the line for ever."""
        if not self._faulty:
            return []
        usable = self.usable_tokens
        return [sequence for sequence in self.waiting if sequence.cache_tokens > usable]

    def add(self, sequence: Sequence) -> None:
        """Put a sequence at its place in the waiting line."""
        insort(self.waiting, sequence, key=lambda each: each.order)

    def schedule(self) -> tuple[StepBatch, list[Sequence]]:
        """Admit what fits and choose the tokens of the next step; computes nothing and changes no token.

        Returns:
            The batch (empty when there is nothing to run) and the sequences admitted for the first time.
        """
        counts: dict[Sequence, int] = {}
        budget = self._max_num_tokens
        for sequence in sorted(self.running, key=lambda each: (each.remaining > 1, each.order)):
            if sequence not in self.running:
                continue  # preempted a moment ago
            count = min(budget, sequence.remaining)
            if count and self._grow(sequence, sequence.computed + count, counts):
                counts[sequence] = count
            budget = self._max_num_tokens - sum(counts.values())
        admitted = []
        while budget and (newcomer := self._admit(budget)) is not None:
            counts[newcomer] = min(budget, newcomer.remaining)
            budget -= counts[newcomer]
            if not newcomer.was_admitted:
                newcomer.was_admitted = True
                newcomer.cached_tokens = newcomer.computed
                admitted.append(newcomer)
        return make_batch(list(counts.items())), admitted

    def computed(self, batch: StepBatch) -> None:
        """Note that a batch has run: its tokens lie in pages now, and full pages can be found by others."""
        for sequence, count in batch.runs:
            before = sequence.computed // self._page_tokens
            sequence.computed += count
            full = sequence.computed // self._page_tokens
            if self._prefix_reuse and full > before:
                self.cache.offer(sequence.page_keys(full, self._page_tokens), sequence.grants, sequence.root)

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence out, waiting or running, and give its pages back."""
        self._remove(sequence)
        self._give_back(sequence)

    def condemn(self, sequence: Sequence) -> None:
        """Take a sequence out and quarantine the pages that only it still rightfully holds.

        The prefix cache lets go of them first: what cannot be trusted must not be found by others.
        """
        self._faulty = True
        self._remove(sequence)
        self.cache.forget_pages({grant.page for grant in sequence.grants})
        self._report(sequence, self.pool.quarantine(sequence.grants))
        sequence.grants = []

    def check_integrity(self) -> None:
        """Check the pool against the tables of all sequences and the prefix cache.

        Raises:
            ServeError: naming every violation.
        """
        self.pool.check_integrity(self._holders())

    def page_holders(self) -> PageHolders:
        """Who holds each page now."""
        live = ((sequence.request_id, sequence.grants) for sequence in (*self.running, *self.waiting))
        return page_holders(self.pool, live, self.cache.pages)

    def _holders(self) -> Iterable[Iterable[Grant]]:
        yield from (sequence.grants for sequence in (*self.running, *self.waiting))
        yield self.cache.grants()

    def _grow(self, sequence: Sequence, tokens: int, counts: dict[Sequence, int]) -> bool:
        """Grant the pages that a sequence needs for this many tokens; False when it had to be preempted itself."""
        missing = self._pages(tokens) - len(sequence.grants)
        while missing > 0:
            grants = self._take(missing)
            if grants is not None:
                self._history.note(sequence.request_id, "granted", grants)
                sequence.grants += grants
                return True
            last = max(self.running, key=lambda each: each.order)
            self._preempt(last)
            counts.pop(last, None)
            if last is sequence:
                return False
        return True

    def _take(self, count: int) -> list[Grant] | None:
        """Free pages, given up by the prefix cache where too few are free."""
        if self.pool.free < count:
            self.cache.evict(count - self.pool.free)
        return self.pool.grant(count)

    def _preempt(self, sequence: Sequence) -> None:
        self.preemptions += 1
        self.running.remove(sequence)
        self._give_back(sequence)
        sequence.computed = 0
        self.add(sequence)

    def _admit(self, budget: int) -> Sequence | None:
        """Admit the first in line that may start, when it fits into the pool and, where it must run whole, into the step."""
        if len(self.running) >= self._max_batch_size:
            return None
        sequence = next((each for each in self.waiting if each.may_start), None)
        if sequence is None or (len(sequence.tokens) > budget and not self._chunked_prompts):
            return None
        # The last token always runs: it is what the next one is sampled from.
        known = (len(sequence.tokens) - 1) // self._page_tokens if self._prefix_reuse else 0
        shared = self.cache.match(sequence.page_keys(known, self._page_tokens))
        missing = self._pages(len(sequence.tokens)) - len(shared)
        # Everyone who runs may want a page soon: an admission that leaves none would be preempted at once.
        spare = len(self.running)
        grants = self._take(missing) if self.pool.free + self.cache.evictable >= missing + spare else None
        if grants is None:
            self.pool.release(shared)
            return None
        self.waiting.remove(sequence)
        self._history.note(sequence.request_id, "shared", shared)
        self._history.note(sequence.request_id, "granted", grants)
        sequence.grants = [*shared, *grants]
        sequence.computed = len(shared) * self._page_tokens
        self.running.append(sequence)
        return sequence

    def _pages(self, tokens: int) -> int:
        return -(-tokens // self._page_tokens)

    def _give_back(self, sequence: Sequence) -> None:
        self._report(sequence, self.pool.release(sequence.grants))
        sequence.grants = []

    def _report(self, sequence: Sequence, stale: list[Grant]) -> None:
        for page, tag in stale:
            self._faulty = True
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
