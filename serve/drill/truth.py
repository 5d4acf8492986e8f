"""What is so, told apart from what the tag table says: who holds each page, and whether rows are what their readers wrote.

The guard compares what a request expects with the tag table. The drill damages tables, books and pages, so it needs a witness
of its own: this tracker notes each grant and each clearing as it happens, and no fault reaches what it has noted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roundhouse.plugins.page_tag import FREE, Int32Array, PageTagTracker

from ..engine.batch import StepBatch
from ..engine.runtime import PreparedBatch
from .pages import DrilledPages

__all__ = ["Verdict", "WitnessTracker", "judge"]


class WitnessTracker:
    """Issues tags as the real tracker does, and remembers the truth.

    Args:
        pages: pages of the pool.
        first_tag: the first that is issued; a run that begins near the largest sees the counter wrap.
    """

    def __init__(self, pages: int, *, first_tag: int) -> None:
        self._tracker = PageTagTracker(pages, first_tag=first_tag)
        self.current: Int32Array = np.full(pages, FREE, dtype=np.int32)
        """int32 [P]: the tag that each page rightfully carries; out of reach of every fault."""
        self.times_granted = np.zeros(pages, dtype=np.int64)
        """int64 [P]"""
        self._lost: set[int] | None = None
        self._shown: Int32Array | None = None

    @property
    def page_tags(self) -> Int32Array:
        """The table that the guard is given."""
        return self._tracker.page_tags if self._shown is None else self._shown

    @property
    def grants(self) -> int:
        """Pages granted so far."""
        return int(self.times_granted.sum())

    def grant(self, page: int) -> int:
        before = int(self._tracker.page_tags[page])
        tag = self._tracker.grant(page)
        self.current[page] = tag
        self.times_granted[page] += 1
        if self._lost is not None:
            self._tracker.page_tags[page] = before
            self._lost.add(page)
            self._lost = None
        return tag

    def issued(self, page: int) -> int:
        return self._tracker.issued(page)

    def clear(self, page: int) -> None:
        self._tracker.clear(page)
        self.current[page] = FREE

    def lose_next_update(self, pages: set[int]) -> None:
        """A fault: the next grant does not reach the tag table. Its page will be put into ``pages``."""
        self._lost = pages

    def show(self, table: Int32Array | None) -> None:
        """A fault: give the guard another table; None gives it the tracker's own again."""
        self._shown = table

    def tags_now(self) -> Int32Array:
        """A copy of the tracker's own table."""
        return self._tracker.page_tags.copy()


class Verdict(NamedTuple):
    """What is so with one row of a prepared batch."""

    wrong: bool
    """It holds a page that is not its own, by the tables or the books, or would read what it did not write."""
    misled: bool
    """What it runs on is right, but the guard is given something else: a tag table or a page count without the truth."""


def judge(batch: StepBatch, prepared: PreparedBatch, tracker: WitnessTracker, pages: DrilledPages) -> list[Verdict]:
    """Every row of a batch, as the runtime is about to be given it."""
    table, counts = prepared.page_table.cpu().numpy(), prepared.page_count.cpu().numpy()
    held = np.arange(table.shape[1])[None] < batch.page_count[:, None]
    own = np.where(held, batch.page_table, 0)
    current = tracker.current[own]
    foreign = held & ((table != batch.page_table) | (current != batch.expected_tags))
    miscounted = (counts > batch.page_count) | (counts < 0) | (counts < -(-batch.context_len // pages.page_tokens))
    misled = (held & (tracker.page_tags[own] != current)).any(axis=1) | miscounted
    wrong = foreign.any(axis=1) | pages.changed_rows(batch, table)
    return [Verdict(bool(one), bool(other)) for one, other in zip(wrong, misled, strict=True)]
