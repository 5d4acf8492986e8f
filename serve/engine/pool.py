"""The page pool: which physical pages of one group are free, held or quarantined, and who counts on them.

It knows how many pages there are and the tracker that tags them; not what a page holds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from roundhouse.errors import ServeError
from roundhouse.plugins.page_tag import FREE, Tracker

__all__ = ["Grant", "PagePool"]


class Grant(NamedTuple):
    """A physical page and the tag that was issued with it. The holder presents both before each step."""

    page: int
    tag: int


class PagePool:
    """Pages 0..``pages`` − 1, each free, held by one or more holders, or quarantined.

    A page that was given back goes to the end of the queue, so a freed page rests as long as possible
    before it is granted again.
    """

    def __init__(self, pages: int, tracker: Tracker) -> None:
        self.pages = pages
        self.tracker = tracker
        self._free = deque(range(pages))
        self._holders = np.zeros(pages, dtype=np.int32)
        self._quarantined: set[int] = set()

    @property
    def free(self) -> int:
        """Pages that can be granted now."""
        return len(self._free)

    @property
    def quarantined(self) -> int:
        """Pages that stay out of use until restart."""
        return len(self._quarantined)

    @property
    def used(self) -> int:
        """Pages with at least one holder."""
        return self.pages - self.free - self.quarantined

    def grant(self, count: int) -> list[Grant] | None:
        """Take ``count`` free pages, each with a new tag; None, and nothing taken, when fewer are free."""
        if count > len(self._free):
            return None
        pages = [self._free.popleft() for _ in range(count)]
        self._holders[pages] = 1
        return [Grant(page, self.tracker.grant(page)) for page in pages]

    def share(self, grant: Grant) -> Grant:
        """Add a holder to a held page. The new holder records the tag that was issued, never the table's.

        Raises:
            ServeError: nobody holds the page.
        """
        self._require_held(grant.page)
        self._holders[grant.page] += 1
        return grant

    def release(self, pages: Iterable[int]) -> None:
        """Let go of pages once each; a page without holders loses its tag and becomes free.

        Raises:
            ServeError: a page has no holder to let go.
        """
        for page in pages:
            if self._let_go(page):
                self._free.append(page)

    def quarantine(self, pages: Iterable[int]) -> list[int]:
        """Let go of pages that can no longer be trusted; those without other holders leave use until restart.

        Returns:
            The pages that are now quarantined. Pages with other holders are left to them.

        Raises:
            ServeError: a page has no holder to let go.
        """
        emptied = [page for page in pages if self._let_go(page)]
        self._quarantined.update(emptied)
        return emptied

    def check_integrity(self, holders: Iterable[Iterable[int]]) -> None:
        """Check invariants 1 and 2 against the page lists of everyone who holds pages.

        Raises:
            ServeError: naming every violation.
        """
        counted = Counter(page for pages in holders for page in pages)
        free, held = list(self._free), {int(page) for page in np.flatnonzero(self._holders)}
        problems = [f"page {page} is twice in the free list" for page, times in Counter(free).items() if times > 1]
        problems += [f"page {page} is free and held" for page in held & set(free)]
        problems += [
            f"page {page} is quarantined and {'held' if page in held else 'free'}"
            for page in self._quarantined & (held | set(free))
        ]
        problems += [
            f"page {page} is lost: neither free, held nor quarantined"
            for page in set(range(self.pages)) - held - set(free) - self._quarantined
        ]
        problems += [
            f"page {page} counts {int(self._holders[page])} holders, {counted[page]} hold it"
            for page in sorted(held | set(counted))
            if self._holders[page] != counted[page]
        ]
        problems += self._tag_problems(held)
        if problems:
            raise ServeError(f"the page pool is inconsistent: {'; '.join(problems)}", hint="Restart the engine process.")

    def _tag_problems(self, held: set[int]) -> list[str]:
        tags = self.tracker.page_tags
        if not len(tags):  # the null tracker keeps no table
            return []
        problems = [
            f"page {page} is not held and carries tag {int(tags[page])}"
            for page in np.flatnonzero(tags).tolist()
            if page not in held
        ]
        problems += [f"page {page} is held without a tag" for page in sorted(held) if tags[page] == FREE]
        live = Counter(int(tags[page]) for page in held)
        return problems + [f"tag {tag} is on {times} pages" for tag, times in live.items() if times > 1 and tag != FREE]

    def _let_go(self, page: int) -> bool:
        """Drop one holder; True when it was the last, and the page's tag is then cleared."""
        self._require_held(page)
        self._holders[page] -= 1
        if self._holders[page]:
            return False
        self.tracker.clear(page)
        return True

    def _require_held(self, page: int) -> None:
        if not 0 <= page < self.pages or not self._holders[page]:
            raise ServeError(f"page {page} has no holder", hint="Restart the engine process: its page tables are wrong.")
