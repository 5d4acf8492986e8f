"""The prefix cache under random use of a full pool: what was used longest ago goes first, never more than is needed."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from roundhouse.plugins.page_tag import PageTagTracker
from roundhouse.serve.engine.pool import Grant, PagePool
from roundhouse.serve.engine.prefix_cache import PrefixCache, page_key, root_key

PAGES = 10
ROOTS = [root_key(salt) for salt in ("", "a", "b", "c")]
CHAINS = [[page_key(root, [0])] for root in ROOTS]
for chain in CHAINS:
    for number in range(1, 4):
        chain.append(page_key(chain[-1], [number]))
CHAIN, LENGTH = st.integers(0, len(CHAINS) - 1), st.integers(1, 4)


class CacheMachine(RuleBasedStateMachine):
    """Prompts of one to four pages come, and may stay a while."""

    holders = Bundle("holders")

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(PAGES, PageTagTracker(PAGES))
        self.cache = PrefixCache(self.pool)
        self.live: list[list[Grant]] = []
        self.used: dict[bytes, int] = {}
        """When each key was used last; the end of a chain before its beginning."""
        self.now = 0

    @rule(target=holders, which=CHAIN, length=LENGTH, computed=st.booleans())
    def come(self, which: int, length: int, computed: bool) -> object:
        """What is not computed, because its client leaves first, is not offered to others."""
        keys = CHAINS[which][:length]
        known = [key for key in keys if key in self.cache._entries]
        mine = self.cache.match(keys)
        assert len(mine) == len(known)
        self._use(known)
        self.live.append(mine)
        self._evict(length - len(mine) - self.pool.free)
        grants = self.pool.grant(length - len(mine))
        if grants is None:  # others hold the rest
            self.leave(mine)
            return multiple()
        mine += grants
        if computed:
            self.cache.offer(keys, mine, ROOTS[which])
            self._use(keys)
        return mine

    @rule(grants=consumes(holders))
    def leave(self, grants: list[Grant]) -> None:
        del self.live[next(place for place, each in enumerate(self.live) if each is grants)]
        assert self.pool.release(grants) == []

    @rule(count=st.integers(1, PAGES))
    def somebody_needs_pages(self, count: int) -> None:
        self._evict(count)

    @invariant()
    def holds(self) -> None:
        self.pool.check_integrity([*self.live, self.cache.grants()])
        assert self.cache.evictable == len(self._evictable())
        for chain in CHAINS:
            kept = [key in self.cache._entries for key in chain]
            assert kept == sorted(kept, reverse=True), "nobody can reach a page whose beginning is gone"

    def _evict(self, count: int) -> None:
        before = self._evictable()
        self.cache.evict(count)
        after = self._evictable()
        assert len(before) - len(after) == min(max(count, 0), len(before))
        assert all(self.used[gone] < self.used[kept] for gone in before - after for kept in after)

    def _use(self, keys: list[bytes]) -> None:
        for key in reversed(keys):
            self.now += 1
            self.used[key] = self.now

    def _evictable(self) -> set[bytes]:
        held = {grant.page for grants in self.live for grant in grants}
        return {key for key, entry in self.cache._entries.items() if entry.grant.page not in held}


TestPrefixCache = CacheMachine.TestCase
TestPrefixCache.settings = settings(max_examples=60, stateful_step_count=40)


@pytest.mark.parametrize("by", ["evict", "forget_pages", "match"])
def test_a_chain_as_long_as_a_long_context_is_given_up_at_once(by: str) -> None:
    """Others still hold what is behind its beginning: a step of theirs was computed together with it."""
    pool = PagePool(3000, PageTagTracker(3000))
    cache = PrefixCache(pool)
    keys = [page_key(ROOTS[0], [0])]
    while len(keys) < 3000:
        keys.append(page_key(keys[-1], [1]))
    grants = pool.grant(3000) or []
    cache.offer(keys, grants, ROOTS[0])
    pool.release(grants[:1])
    if by == "evict":
        cache.evict(1)
    elif by == "forget_pages":
        cache.forget_pages({grants[0].page})
    else:
        pool.release(grants[:1])  # a fault: the cache's own hold
        assert cache.match(keys) == []
    assert len(cache) == 0
    assert pool.used == 2999
    pool.check_integrity([grants[1:]])
