"""Who holds each page of a KV pool, as it is told outside of the engine: JSON, page numbers in runs.

No NumPy here: the console reads it too.
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["PAGE_STATES", "HeldBy", "HoldingRequest", "PageMap", "PageRun", "PageState"]

PageState = Literal["free", "used", "shared", "quarantined"]
PAGE_STATES: tuple[PageState, ...] = ("free", "used", "shared", "quarantined")
"""In the order of the engine's numbers for them. ``used``: one request holds it; ``shared``: several holders do, or only the
prefix cache."""


class HoldingRequest(msgspec.Struct, frozen=True):
    """A live request that holds pages."""

    request_id: str
    """The engine's own, as integrity events name it."""
    client_id: str = ""
    """The beginning of the one that its client gave, where it gave one."""


class HeldBy(msgspec.Struct, frozen=True):
    """Who holds some pages together. Nobody: a fault lost whoever did."""

    requests: list[HoldingRequest]
    """The first few of them."""
    more: int = 0
    """Requests beside those."""
    prefix_cache: bool = False
    """Whether the prefix cache does, too."""


class PageRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Pages that follow one another, with the same state and holders, and tags that follow one another."""

    pages: int
    """How many; the first run begins with page 0, each other one where the one before ends."""
    state: PageState
    tag: int
    """Of the first; 0 where pages carry none."""
    held_by: int
    """Which of the map's holders; −1 where there are none."""


class PageMap(msgspec.Struct, frozen=True, kw_only=True):
    """A pool at a moment between two steps."""

    object: Literal["page_map"] = "page_map"
    pages: int
    held_by: list[HeldBy]
    runs: list[PageRun]
