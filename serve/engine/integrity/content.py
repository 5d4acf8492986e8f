"""Whether pages still hold what was written into them, checked before every step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from roundhouse.plugins.page_content import PageSeals
from roundhouse.plugins.page_tag import FREE

from ..batch import StepBatch
from ..runtime import PreparedBatch

__all__ = ["ContentCheck"]


class ContentCheck:
    """Seals every page that a step has written, and compares pages of a batch with their seals before the next.

    A page that is still being filled is compared before every step that presents it: the step will seal it anew, and with it
    whatever had been damaged. Of full pages, which are written no more, a share is compared in each step. A page that was found
    changed is remembered: whoever presents it from then on is told so. A page that should hold what a row has computed, and was
    never sealed under its tag, is somebody else's leftovers.

    Args:
        pages: pages of the pool.
        page_tokens: tokens a page holds.
        read: bytes of a page as they are now, uint8 [page_bytes].
        share: how likely each full page of a batch is compared before a step; 1 compares all.
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
        self._is_open = np.zeros(pages, dtype=np.bool_)
        """bool [P]: sealed before it was full."""
        self._spoiled_tags = np.full(pages, FREE, dtype=np.int32)
        """int32 [P]: the tag under which a page was found changed."""
        self._page_tokens = page_tokens
        self._read = read
        self._share = share
        self._draw = np.random.default_rng(seed)
        self.checks = 0
        """Pages compared so far."""

    def written(self, batch: StepBatch) -> None:
        """Seal the pages that a batch's tokens were written into."""
        for row, (sequence, count) in enumerate(batch.runs):
            end = sequence.computed + count
            last, within = divmod(end, self._page_tokens)
            for column in range(sequence.computed // self._page_tokens, last + (within > 0)):
                page, tag = int(batch.page_table[row, column]), int(batch.expected_tags[row, column])
                self._seals.seal(page, tag, self._read(page))
                self._is_open[page] = column == last

    def bad_cells(self, prepared: PreparedBatch) -> list[tuple[int, int]]:
        """(row, first bad column) of every row that holds such a page. All tags and counts of the batch have agreed."""
        table, tags = prepared.page_table.cpu().numpy(), prepared.expected_tags.cpu().numpy()
        columns = np.arange(table.shape[1])[None]
        counted = columns < prepared.page_count.cpu().numpy()[:, None]
        pages = np.where(counted, table, 0)
        computed = prepared.context_len.cpu().numpy() - np.diff(prepared.query_start.cpu().numpy())
        never_written = (columns * self._page_tokens < computed[:, None]) & ~self._seals.are_sealed(pages, tags)
        chosen = self._is_open | (self._draw.random(len(self._is_open), dtype=np.float32) < self._share)
        asked = counted & chosen[pages]
        for page, tag in dict.fromkeys(zip(table[asked].tolist(), tags[asked].tolist(), strict=True)):
            if self._seals.is_sealed(page, tag):
                self.checks += 1
                if not self._seals.is_intact(page, tag, self._read(page)):
                    self._spoiled_tags[page] = tag
        bad = counted & ((self._spoiled_tags[pages] == tags) | never_written)
        return [(int(row), int(bad[row].argmax())) for row in np.flatnonzero(bad.any(axis=1))]
