"""Who holds each page: as the engine tells it, a page at a time, and as its books say when they are gone through one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roundhouse.serve.engine.page_holders import PageHolders
from roundhouse.serve.engine.scheduler import Scheduler
from roundhouse.serve.page_map import PAGE_STATES


@dataclass(frozen=True)
class Page:
    """What is told of a page."""

    state: str
    tag: int
    requests: frozenset[str] = frozenset()
    prefix_cache: bool = False


def told(holders: PageHolders) -> list[Page]:
    """Every page of an answer. Runs must be as long as they can be, and groups not too large to be named."""
    lengths, tags, held_by = (
        np.frombuffer(column, dtype="<i4").tolist() for column in (holders.lengths, holders.tags, holders.held_by)
    )
    pages: list[Page] = []
    for length, state, tag, group in zip(lengths, holders.states, tags, held_by, strict=True):
        assert length > 0
        who = holders.groups[group] if group >= 0 else None
        assert who is None or who.more == 0
        requests = frozenset(who.requests) if who else frozenset()
        first = Page(PAGE_STATES[state], tag, requests, who is not None and who.prefix_cache)
        run = [Page(first.state, tag + number if tag else 0, first.requests, first.prefix_cache) for number in range(length)]
        assert not pages or not follows(pages[-1], run[0]), "one run was told as two"
        pages += run
    assert len(pages) == holders.pages
    return pages


def follows(page: Page, then: Page) -> bool:
    tags_follow = then.tag == (page.tag + 1 if page.tag else 0)
    return tags_follow and (page.state, page.requests, page.prefix_cache) == (then.state, then.requests, then.prefix_cache)


def kept(scheduler: Scheduler) -> list[Page]:
    """Every page, from the grants of everybody, the free list and the quarantined pages."""
    pool = scheduler.pool
    holders: list[list[str]] = [[] for _ in range(pool.pages)]
    for sequence in (*scheduler.running, *scheduler.waiting):
        for grant in sequence.grants:
            holders[grant.page].append(sequence.request_id)
    cached = {grant.page for grant in scheduler.cache.grants()}
    pages = []
    for page, requests in enumerate(holders):
        count = len(requests) + (page in cached)
        if page in pool._quarantined:
            assert count == 0
            state = "quarantined"
        elif page in pool._free:
            assert count == 0
            state = "free"
        else:
            state = "used" if count == len(requests) == 1 else "shared"
        pages.append(Page(state, pool.tracker.issued(page), frozenset(requests), page in cached))
    return pages
