"""Who holds each page, where the property tests do not go: faults, crowds, and no tags at all."""

from __future__ import annotations

import numpy as np
from page_books import told

from roundhouse.plugins.page_tag import NullTracker, PageTagTracker
from roundhouse.serve.engine.page_holders import page_holders
from roundhouse.serve.engine.pool import Grant, PagePool

NO_CACHE = np.zeros(4, dtype=np.bool_)


def pool_of(count: int) -> tuple[PagePool, list[Grant]]:
    pool = PagePool(4, PageTagTracker(4, first_tag=100))
    return pool, pool.grant(count) or []


def test_a_grant_that_its_page_contradicts_holds_nothing() -> None:
    pool, mine = pool_of(2)
    pool.release([mine[0]])  # a fault: it is still presented
    first, second, *_ = told(page_holders(pool, [("mine", mine)], NO_CACHE))
    assert (first.state, first.tag, first.requests) == ("free", 0, frozenset())
    assert (second.state, second.tag, second.requests) == ("used", 101, {"mine"})
    pool._free.appendleft(pool._free.pop())
    theirs = pool.grant(1) or []
    assert theirs[0].page == mine[0].page
    first, *_ = told(page_holders(pool, [("mine", mine), ("theirs", theirs)], NO_CACHE))
    assert (first.state, first.tag, first.requests) == ("used", 102, {"theirs"})


def test_a_page_that_a_fault_lost_is_held_by_nobody() -> None:
    pool, _ = pool_of(1)
    assert told(page_holders(pool, [], NO_CACHE))[0].requests == frozenset()
    assert told(page_holders(pool, [], NO_CACHE))[0].state == "used"


def test_of_a_crowd_the_first_are_named_and_the_others_counted() -> None:
    pool, (grant,) = pool_of(1)
    crowd = [(f"r{number % 11}", [pool.share(grant)]) for number in range(22)]
    cached = NO_CACHE.copy()
    cached[grant.page] = True
    pool.release([grant])
    holders = page_holders(pool, crowd, cached)
    (group,) = holders.groups
    assert group.requests == [f"r{number}" for number in range(8)]
    assert (group.more, group.prefix_cache) == (3, True)


def test_sets_that_begin_alike_are_told_apart() -> None:
    pool, grants = pool_of(2)
    crowd = [(f"r{number}", [pool.share(grant) for grant in grants]) for number in range(8)]
    one, two = ("a", [pool.share(grants[0])]), ("b", [pool.share(grants[1])])
    holders = page_holders(pool, [*crowd, one, two], NO_CACHE)
    assert [group.more for group in holders.groups] == [1, 1]
    assert len(np.frombuffer(holders.held_by, dtype="<i4")) == 3


def test_without_tags_pages_are_told_by_number() -> None:
    pool = PagePool(4, NullTracker())
    grants = pool.grant(3) or []
    holders = page_holders(pool, [("mine", grants)], NO_CACHE)
    assert np.frombuffer(holders.lengths, dtype="<i4").tolist() == [3, 1]
    assert told(holders)[0].requests == {"mine"}
    assert not any(page.tag for page in told(holders))


def test_pages_out_of_range_are_nobodys() -> None:
    pool, grants = pool_of(1)
    stray = [*grants, Grant(-1, 100), Grant(99, 100)]
    assert [page.requests for page in told(page_holders(pool, [("mine", stray)], NO_CACHE))] == [{"mine"}] + [frozenset()] * 3
