"""The page-tag check of one loop: who guards, who issues tags, and what is said and counted when they differ."""

from __future__ import annotations

from roundhouse.plugins.guard import NullGuard, PageGuard, TorchPageGuard
from roundhouse.plugins.page_tag import NullTracker, PageTagTracker, Tracker

from .runtime import PreparedBatch

__all__ = ["TagCheck"]


class TagCheck:
    """Compares the tags of prepared batches. When the guard is off nothing is compared, and tags are not even issued.

    Args:
        pages: pages of the pool.
        on: whether the guard is on.
    """

    def __init__(self, pages: int, *, on: bool) -> None:
        self.tracker: Tracker = PageTagTracker(pages) if on else NullTracker()
        self._guard: PageGuard = TorchPageGuard() if on else NullGuard()
        self._on = on
        self.checks = 0
        self.mismatches = 0

    def bad_rows(self, prepared: PreparedBatch) -> list[tuple[int, int]]:
        """(row, first bad column) of every row whose tags differ."""
        self.checks += self._on
        tags = self.tracker.page_tags
        return self._guard.bad_rows(prepared.page_table, prepared.page_count, prepared.expected_tags, tags)

    def describe(self, prepared: PreparedBatch, row: int, column: int) -> str:
        """A mismatch in words, for the log."""
        count, columns = int(prepared.page_count[row]), prepared.page_table.shape[1]
        if not 0 <= count <= columns:
            return f"page tag mismatch, impossible page count {count} of {columns} columns"
        page, expected = int(prepared.page_table[row, column]), int(prepared.expected_tags[row, column])
        tags = self.tracker.page_tags
        found = int(tags[page]) if 0 <= page < len(tags) else "no such page"
        return f"page tag mismatch, column {column}, page {page}, expected tag {expected}, found {found}"
