"""Who holds each page of a pool now, worked out between two steps when somebody asks.

Nothing is kept for it while nobody does. Pages are told in runs, as bytes: an answer about 100,000 of them must neither hold up
a step for long nor take long to send.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
import numpy as np
import numpy.typing as npt

from ..page_map import PAGE_STATES
from .pool import Grant, PagePool

__all__ = ["HolderGroup", "PageHolders", "page_holders"]

_USED, _SHARED = PAGE_STATES.index("used"), PAGE_STATES.index("shared")
_MOST_NAMED = 8
"""Requests named of those that share a page."""

_Int = npt.NDArray[np.int64]


class HolderGroup(msgspec.Struct, frozen=True):
    """Who holds some pages together."""

    requests: list[str]
    """Ids of the first few requests, in the order in which they run."""
    more: int
    """Requests beside those."""
    prefix_cache: bool


class PageHolders(msgspec.Struct, frozen=True, kw_only=True, tag="page_holders"):
    """A pool's pages in runs of the same state and holders whose tags follow one another."""

    pages: int
    lengths: bytes
    """int32 [R], little-endian like the others: pages of each run."""
    states: bytes
    """uint8 [R]: places in :data:`roundhouse.serve.page_map.PAGE_STATES`."""
    tags: bytes
    """int32 [R]: what the first page carries; 0 for none."""
    held_by: bytes
    """int32 [R]: places in ``groups``; −1 for nobody."""
    groups: list[HolderGroup]


def page_holders(pool: PagePool, holders: Iterable[tuple[str, Sequence[Grant]]], cached: npt.NDArray[np.bool_]) -> PageHolders:
    """Say who holds what. A grant that its page contradicts holds nothing.

    Args:
        pool: the pages.
        holders: request id and grants of every sequence; those of one request need not stand together.
        cached: bool [P], pages that the prefix cache holds.
    """
    tags = np.zeros(pool.pages, dtype=np.int64)
    if tagged := len(pool.tracker.page_tags) > 0:
        tags[:] = pool.tracker.page_tags
    states = pool.states(cached)
    held = (states == _USED) | (states == _SHARED)
    who = [(request_id, grants) for request_id, grants in holders if grants]
    pages, presented = _columns([grants for _, grants in who])
    holder = np.repeat(np.arange(len(who)), [len(grants) for _, grants in who])
    there = (pages >= 0) & (pages < pool.pages)
    if not there.all():
        pages, presented, holder = pages[there], presented[there], holder[there]
    counts = held[pages] & (tags[pages] == presented) if tagged else held[pages]
    sets = _HolderSets(pool.pages, [request_id for request_id, _ in who])
    sets.fill(pages[counts], holder[counts])
    held_by, groups = sets.groups(cached & held)
    step = ((tags > 0) & held).astype(np.int64)
    follows = (states[1:] == states[:-1]) & (held_by[1:] == held_by[:-1]) & (tags[1:] == tags[:-1] + step[:-1])
    starts = np.concatenate(([0], np.flatnonzero(~follows) + 1))
    return PageHolders(
        pages=pool.pages,
        lengths=_bytes(np.diff(starts, append=pool.pages)),
        states=states[starts].tobytes(),
        tags=_bytes(tags[starts]),
        held_by=_bytes(held_by[starts]),
        groups=groups,
    )


class _HolderSets:
    """Which set of holders has each page. The first sets are of one holder each; every other is a set and one holder more."""

    def __init__(self, pages: int, request_ids: Sequence[str]) -> None:
        self._of_page = np.full(pages, -1, dtype=np.int64)
        self._sets: list[tuple[int, str]] = [(-1, request_id) for request_id in request_ids]
        """The set before (−1: nobody), and who came to it."""
        self._order = {request_id: number for number, request_id in reversed(list(enumerate(request_ids)))}

    def fill(self, pages: _Int, holder: _Int) -> None:
        """Put every page into its set.

        Args:
            pages: of all holders, one holder's after another's.
            holder: whose each of them is.
        """
        alone = np.bincount(pages, minlength=len(self._of_page))[pages] == 1
        self._of_page[pages[alone]] = holder[alone]
        pages, holder = pages[~alone], holder[~alone]
        for own in np.split(np.arange(len(pages)), np.flatnonzero(np.diff(holder)) + 1):
            if len(own):
                self._share(self._sets[holder[own[0]]][1], pages[own])

    def _share(self, request_id: str, pages: _Int) -> None:
        """One more holder of these pages."""
        before = self._of_page[pages]
        for found in np.unique(before).tolist():
            self._of_page[pages[before == found]] = len(self._sets)
            self._sets.append((found, request_id))

    def groups(self, cached: npt.NDArray[np.bool_]) -> tuple[_Int, list[HolderGroup]]:
        """For each page its place among the groups, −1 for nobody; and the groups that hold any page."""
        keys = 2 * (self._of_page + 1) + cached
        there = np.zeros(2 * (len(self._sets) + 1), dtype=np.bool_)
        there[keys] = True
        places = np.full(len(there), -1, dtype=np.int64)
        found: dict[tuple[tuple[str, ...], bool], int] = {}
        for key in np.flatnonzero(there).tolist():
            if key:  # several answers of a request may have made several sets of the same requests
                group = (self._requests(key // 2), bool(key % 2))
                places[key] = found.setdefault(group, len(found))
        named = [HolderGroup(list(who[:_MOST_NAMED]), max(0, len(who) - _MOST_NAMED), cache) for who, cache in found]
        return places[keys], named

    def _requests(self, number: int) -> tuple[str, ...]:
        """The requests of a set, in the order in which they came."""
        requests = set()
        while number:
            number, request_id = self._sets[number - 1][0] + 1, self._sets[number - 1][1]
            requests.add(request_id)
        return tuple(sorted(requests, key=self._order.__getitem__))


def _columns(grants: Sequence[Sequence[Grant]]) -> tuple[_Int, _Int]:
    """Page and tag of each grant."""
    numbers = chain.from_iterable(chain.from_iterable(grants))
    both = np.fromiter(numbers, dtype=np.int64, count=2 * sum(map(len, grants)))
    return both[::2], both[1::2]


def _bytes(values: _Int) -> bytes:
    return values.astype("<i4").tobytes()
