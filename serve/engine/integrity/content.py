"""Whether pages still hold what was written into them, checked on a sample before every step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from roundhouse.plugins.page_content import PageSeals

from ..batch import StepBatch
from ..runtime import PreparedBatch

__all__ = ["ContentCheck"]


class ContentCheck:
    """Seals every page that a step has written, and compares a share of a batch's pages with their seals.

    A page that was found changed is remembered: whoever presents it from then on is told so without any chance in it.

    Args:
        pages: pages of the pool.
        page_tokens: tokens a page holds.
        read: bytes of a page as they are now, uint8 [page_bytes].
        share: how likely each page of a batch is compared before a step; 1 compares all.
        seed: of what chooses them.
    """

    def __init__(
        self,
        pages: int,
        page_tokens: int,
        read: Callable[[int], npt.NDArray[np.uint8]],
        *,
        share: float,
        seed: int | None = None,
    ) -> None:
        self._seals = PageSeals(pages)
        self._spoiled: set[tuple[int, int]] = set()
        self._page_tokens = page_tokens
        self._read = read
        self._share = share
        self._draw = np.random.default_rng(seed)
        self.checks = 0
        """Pages compared so far."""

    def written(self, batch: StepBatch) -> None:
        """Seal what a batch that has run wrote: the pages of its tokens, open ones included."""
        for row, (sequence, count) in enumerate(batch.runs):
            first, last = sequence.computed // self._page_tokens, (sequence.computed + count - 1) // self._page_tokens
            for column in range(first, last + 1):
                page, tag = int(batch.page_table[row, column]), int(batch.expected_tags[row, column])
                self._seals.seal(page, tag, self._read(page))

    def bad_cells(self, prepared: PreparedBatch) -> list[tuple[int, int]]:
        """(row, first bad column) of every row that holds a page found changed. All tags of the batch have agreed."""
        table, tags = prepared.page_table.cpu().numpy(), prepared.expected_tags.cpu().numpy()
        counted = np.arange(table.shape[1])[None] < prepared.page_count.cpu().numpy()[:, None]
        pages, first = np.unique(table[counted], return_index=True)
        expected = tags[counted][first]
        chosen = self._draw.random(len(pages)) < self._share
        for page, tag in zip(pages[chosen].tolist(), expected[chosen].tolist(), strict=True):
            if self._seals.is_sealed(page, tag):
                self.checks += 1
                if not self._seals.is_intact(page, tag, self._read(page)):
                    self._spoiled.add((page, tag))
        if not self._spoiled:
            return []
        spoiled = np.array(
            [cell in self._spoiled for cell in zip(pages.tolist(), expected.tolist(), strict=True)], dtype=np.bool_
        )
        bad = counted & np.isin(table, pages[spoiled])
        return [(int(row), int(bad[row].argmax())) for row in np.flatnonzero(bad.any(axis=1))]
