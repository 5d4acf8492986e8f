"""The page pool: which physical pages of one group are free, held or quarantined, and who counts on them.

It knows how many pages there are and the tracker that tags them; not what a page holds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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

    A grant counts as long as its tag is the one that was issued with the page last. A grant that a
    fault made stale (its page was freed or granted again under its holder) lets go of nothing: the page
    belongs to somebody else by now, or to nobody. Without tags (the null tracker) a page that has any
    holder passes for the caller's.
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

    def states(self, cached: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
        """What has become of each page, uint8 [P], as places in :data:`roundhouse.serve.page_map.PAGE_STATES`.

        Args:
            cached: bool [P], pages that the prefix cache holds: one that nobody else holds counts as shared.
        """
        states = np.minimum(self._holders, 2).astype(np.uint8)
        states[cached & (self._holders == 1)] = 2
        states[list(self._quarantined)] = 3
        return states

    def is_held_once(self, page: int) -> bool:
        """Whether a page has one holder only."""
        return bool(self._holders[page] == 1)

    def held_once(self, mask: npt.NDArray[np.bool_]) -> int:
        """How many of the pages that ``mask``, bool [P], names have one holder only."""
        return int(np.count_nonzero(self._holders[mask] == 1))

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
            ServeError: the grant is stale.
        """
        if not self._counts(grant):
            raise ServeError(f"page {grant.page} is not held under tag {grant.tag}", hint="Restart the engine process.")
        self._holders[grant.page] += 1
        return grant

    def release(self, grants: Iterable[Grant]) -> list[Grant]:
        """Let go of grants once each; a page without holders loses its tag and becomes free.

        Returns:
            The stale grants. Their pages were left alone.
        """
        emptied, stale = self._let_go(grants)
        self._free.extend(emptied)
        return stale

    def quarantine(self, grants: Iterable[Grant]) -> list[Grant]:
        """Let go of grants that can no longer be trusted; pages without other holders leave use until restart.

        Returns:
            The stale grants. Their pages, like pages with other holders, were left alone.
        """
        emptied, stale = self._let_go(grants)
        self._quarantined.update(emptied)
        # The fault may have put such a page on the free list as well.
        self._free = deque(page for page in self._free if page not in self._quarantined)
        return stale

    def freed_by(self, grants: Iterable[Grant]) -> int:
        """How many pages would be free if these grants were let go of. A page with a holder that a fault lost never is."""
        counted = Counter(grant for grant in grants if self._counts(grant))
        return sum(self._holders[grant.page] == count for grant, count in counted.items())

    def check_integrity(self, holders: Iterable[Iterable[Grant]]) -> None:
        """Check invariants 1 and 2 against the grants of everyone who holds pages.

        A fault is reported from the moment it happens. Once the request that it hit has ended the books
        are whole again, but for a page whose only grant was overwritten: it stays counted as held, by
        nobody, and is reported until restart. It is never granted again.

        Raises:
            ServeError: naming every violation.
        """
        grants = [grant for each in holders for grant in each]
        counted = Counter(grant.page for grant in grants)
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
        problems += [
            f"page {grant.page} is held under tag {grant.tag}, issued is {self.tracker.issued(grant.page)}"
            for grant in grants
            if grant.tag != self.tracker.issued(grant.page)
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

    def _let_go(self, grants: Iterable[Grant]) -> tuple[list[int], list[Grant]]:
        """Drop one holder a grant; returns the pages without holders now, their tags cleared, and the stale grants."""
        emptied, stale = [], []
        for grant in grants:
            if not self._counts(grant):
                stale.append(grant)
                continue
            self._holders[grant.page] -= 1
            if not self._holders[grant.page]:
                self.tracker.clear(grant.page)
                emptied.append(grant.page)
        return emptied, stale

    def _counts(self, grant: Grant) -> bool:
        """Whether the page is held under this grant's tag."""
        page, tag = grant
        return 0 <= page < self.pages and bool(self._holders[page]) and self.tracker.issued(page) == tag
