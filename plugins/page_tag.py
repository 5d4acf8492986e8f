"""Page tags: what they are, who issues them, and the check that compares them. Plain NumPy.

Every physical KV page carries a *tag*: a positive int32, drawn from one pool-wide counter each time
the page is granted and unique among live pages; 0 when nobody holds the page. Whoever is granted a
page records the tag it was **issued** and presents it before every step. If the page was reassigned
meanwhile, the tags differ, and the step must not run for that request.

:func:`first_bad_columns` is the definition that every other implementation is compared with.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["FREE", "Int32Array", "NullTracker", "PageTagTracker", "Tracker", "first_bad_columns"]

Int32Array = npt.NDArray[np.int32]

_LARGEST_TAG = 2**31 - 1
FREE = 0
"""The tag of a page that nobody holds."""


class Tracker(Protocol):
    """Issues a tag for each granted page and clears it when the last holder lets go."""

    @property
    def page_tags(self) -> Int32Array:
        """int32 [P]: the tag each physical page carries now."""
        ...

    def grant(self, page: int) -> int:
        """Draw a new tag for a page, write it to the table and return it."""
        ...

    def issued(self, page: int) -> int:
        """The tag that was issued with the page's latest grant; 0 once it is cleared. Never read from the table."""
        ...

    def clear(self, page: int) -> None:
        """Set a page's tag to 0, before the page can be granted again."""
        ...


class PageTagTracker:
    """Tags drawn from one counter that wraps from 2**31 − 1 to 1 and skips tags still in use.

    What was issued is kept apart from the table: the table is what a fault may overwrite, and a
    tracker that trusted it would then free the wrong tag.
    """

    def __init__(self, pages: int, *, first_tag: int = 1) -> None:
        self.page_tags: Int32Array = np.zeros(pages, dtype=np.int32)
        self._next = first_tag
        self._issued: dict[int, int] = {}
        self._live: set[int] = set()

    def grant(self, page: int) -> int:
        self.clear(page)
        tag = self._next
        while tag in self._live:
            tag = _after(tag)
        self._next = _after(tag)
        self._live.add(tag)
        self._issued[page] = tag
        self.page_tags[page] = tag
        return tag

    def issued(self, page: int) -> int:
        return self._issued.get(page, FREE)

    def clear(self, page: int) -> None:
        tag = self._issued.pop(page, None)
        if tag is not None:
            self._live.discard(tag)
        self.page_tags[page] = FREE


class NullTracker:
    """The guard is off: no table, every tag is 0."""

    def __init__(self) -> None:
        self.page_tags: Int32Array = np.zeros(0, dtype=np.int32)

    def grant(self, page: int) -> int:
        return FREE

    def issued(self, page: int) -> int:
        return FREE

    def clear(self, page: int) -> None:
        return None


def first_bad_columns(
    page_table: Int32Array, page_count: Int32Array, expected_tags: Int32Array, page_tags: Int32Array
) -> Int32Array:
    """The first column of each row whose page does not carry the expected tag.

    Args:
        page_table: int32 [B, M], physical pages; cells from ``page_count`` on are not looked at.
        page_count: int32 [B], how many columns of each row count.
        expected_tags: int32 [B, M], the tags issued with these pages.
        page_tags: int32 [P], the tags the pages carry now.

    Returns:
        int32 [B]: the first bad column, or −1 when all agree. A page out of range, a negative cell
        inside the count and a count outside 0..M are mismatches (a bad count is bad at column 0 when
        negative, at column M when above M), never an out-of-bounds read.
    """
    columns = page_table.shape[1]
    counted = np.arange(columns)[None, :] < page_count[:, None]
    in_range = (page_table >= 0) & (page_table < len(page_tags))
    found = np.full(page_table.shape, FREE, dtype=np.int32)
    found[in_range] = page_tags[page_table[in_range]]
    bad = counted & (~in_range | (found != expected_tags))
    # One more column stands for "the count is above M": argmax then finds it only when no cell is bad.
    bad = np.concatenate((bad, (page_count > columns)[:, None]), axis=1)
    first = np.where(bad.any(axis=1), bad.argmax(axis=1), -1).astype(np.int32)
    first[page_count < 0] = 0
    return first


def _after(tag: int) -> int:
    return 1 if tag == _LARGEST_TAG else tag + 1
