"""A batch's pages and tags as tables. In arrays: a batch may present hundreds of thousands of pages in each step."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from roundhouse.plugins.page_tag import Int32Array

from ..engine.pool import Grant
from .prefixes import NEVER_ISSUED

__all__ = ["NO_ROW", "PageRow", "PageTables", "lay_out"]


@dataclass(frozen=True)
class PageTables:
    """What a batch presents, a row for each request."""

    page_table: Int32Array
    """int32 [B, M], −1 where unused."""
    page_count: Int32Array
    """int32 [B]."""
    expected_tags: Int32Array
    """int32 [B, M]."""


class PageRow:
    """The grants of one request, by column."""

    def __init__(self) -> None:
        self.pages = array("i")
        self.tags = array("i")

    def extend(self, grants: Iterable[Grant]) -> None:
        """Add columns."""
        for page, tag in grants:
            self.pages.append(page)
            self.tags.append(tag)

    def grants(self) -> list[Grant]:
        """Every column."""
        return [Grant(page, tag) for page, tag in zip(self.pages, self.tags, strict=True)]

    def cut(self, columns: int) -> list[Grant]:
        """Keep so many columns. Returns the others."""
        rest = self.grants()[columns:]
        del self.pages[columns:], self.tags[columns:]
        return rest


NO_ROW = PageRow()
"""Of a request that was granted nothing."""


def lay_out(presented: Sequence[Sequence[int]], rows: Sequence[PageRow]) -> PageTables:
    """Tables of what requests present, and of what was issued to them.

    Args:
        presented: the pages of each request.
        rows: its grants. A page without one is expected to carry a tag that was never issued.
    """
    count = np.array([len(pages) for pages in presented], dtype=np.int32)
    shape = (len(presented), int(count.max(initial=0)))
    table, expected = np.full(shape, -1, dtype=np.int32), np.full(shape, NEVER_ISSUED, dtype=np.int32)
    for number, (pages, row) in enumerate(zip(presented, rows, strict=True)):
        tags = row.tags[: len(pages)]
        table[number, : len(pages)] = array("i", pages)  # NumPy takes longer to read a list
        expected[number, : len(tags)] = tags
    return PageTables(table, count, expected)
