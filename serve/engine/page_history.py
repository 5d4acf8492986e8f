"""Who got which page lately, for whoever has to find out how a page changed hands under its holder.

TensorRT-LLM's ranks import this too: it knows nothing of our loop.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Literal

from .page_events import Holder
from .pool import Grant

__all__ = ["NO_HISTORY", "PageHistory"]

_HOLDERS = 4
"""How many are remembered of each page."""


class PageHistory:
    """The latest holders of each page, in a ring of four cells a page: what it costs does not grow.

    A page takes 85 bytes from the start, and the request ids that its cells name (81 bytes for one of 32 letters, kept once
    for all cells that name it): at most 409 bytes.

    Args:
        pages: pages of the pool.
    """

    def __init__(self, pages: int) -> None:
        self.step = 0
        """The step that grants are made for now."""
        self._pages = pages
        self._latest = bytearray(pages)
        """[P]: which of a page's cells was written last."""
        cells = _HOLDERS * pages
        self._request_ids: list[str | None] = [None] * cells
        """[P * 4]; None where nobody was noted yet."""
        self._tags = array("i", [0]) * cells
        self._steps = array("q", [0]) * cells
        self._shared = bytearray(cells)

    def begin_step(self, step: int) -> None:
        """Grants are made for this step from now on."""
        self.step = step

    def note(self, request_id: str, how: Literal["granted", "shared"], grants: Iterable[Grant]) -> None:
        """A request got these pages."""
        step, shared = self.step, how == "shared"
        for page, tag in grants:
            cell = self._latest[page] = (self._latest[page] + 1) % _HOLDERS
            cell += _HOLDERS * page
            self._request_ids[cell] = request_id
            self._tags[cell] = tag
            self._steps[cell] = step
            self._shared[cell] = shared

    def last_holders(self, page: int) -> list[Holder]:
        """The latest first, four at most; nobody for a page that is not there."""
        if not 0 <= page < self._pages:
            return []
        cells = [_HOLDERS * page + (self._latest[page] - back) % _HOLDERS for back in range(_HOLDERS)]
        return [
            Holder(
                request_id=request_id,
                tag=self._tags[cell],
                step=self._steps[cell],
                how="shared" if self._shared[cell] else "granted",
            )
            for cell in cells
            if (request_id := self._request_ids[cell]) is not None
        ]


class _NoHistory(PageHistory):
    """The null twin: the guard is off."""

    def begin_step(self, step: int) -> None:
        pass

    def note(self, request_id: str, how: Literal["granted", "shared"], grants: Iterable[Grant]) -> None:
        pass


NO_HISTORY: PageHistory = _NoHistory(0)
"""Remembers nothing."""
