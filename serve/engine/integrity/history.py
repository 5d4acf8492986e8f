"""Who got which page lately, for whoever has to find out how a page changed hands under its holder."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal

from ..pool import Grant
from .event import Holder

__all__ = ["NO_HISTORY", "PageHistory"]

_MOST_HOLDERS = 8


class PageHistory:
    """The latest grants of all pages together, in a ring: what it costs does not grow.

    Args:
        length: how many grants are remembered.
    """

    def __init__(self, length: int) -> None:
        self.step = 0
        """The step that grants are made for now."""
        self._ring: deque[tuple[Grant, str, int, Literal["granted", "shared"]]] = deque(maxlen=length)

    def note(self, request_id: str, how: Literal["granted", "shared"], grants: Iterable[Grant]) -> None:
        """A request got these pages."""
        self._ring.extend((grant, request_id, self.step, how) for grant in grants)

    def last_holders(self, page: int) -> list[Holder]:
        """The latest first; a few at most."""
        found = (entry for entry in reversed(self._ring) if entry[0].page == page)
        return [
            Holder(request_id=request_id, tag=grant.tag, step=step, how=how)
            for (grant, request_id, step, how), _ in zip(found, range(_MOST_HOLDERS), strict=False)
        ]


class _NoHistory(PageHistory):
    """The null twin: the guard is off."""

    def note(self, request_id: str, how: Literal["granted", "shared"], grants: Iterable[Grant]) -> None:
        pass


NO_HISTORY: PageHistory = _NoHistory(0)
"""Remembers nothing."""
