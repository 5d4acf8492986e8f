"""The page pool and the scheduler under random use, with the pool exactly exhausted again and again."""

from __future__ import annotations

from collections import Counter
from typing import cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, precondition, rule
from page_books import kept, told

from roundhouse.errors import ServeError
from roundhouse.plugins.page_tag import NullTracker, PageTagTracker, Tracker
from roundhouse.serve.engine.detokenize import TextStream
from roundhouse.serve.engine.pool import Grant, PagePool
from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.engine.sampling_state import SamplingState
from roundhouse.serve.engine.scheduler import Scheduler
from roundhouse.serve.engine.sequence import Sequence
from roundhouse.serve.engine.tokenizer import EngineTokenizer

PAGES = 12


class PoolMachine(RuleBasedStateMachine):
    """Holders take, share, give back and condemn pages; each holder is a list of grants."""

    holders = Bundle("holders")

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(PAGES, PageTagTracker(PAGES, first_tag=2**31 - 4))
        self.live: list[list[Grant]] = []

    @rule(target=holders, count=st.integers(0, PAGES))
    def grant(self, count: int) -> object:
        free = self.pool.free
        grants = self.pool.grant(count)
        assert (grants is None) == (count > free)
        if grants is None:
            assert self.pool.free == free
            return multiple()
        assert len({grant.page for grant in grants}) == count
        self.live.append(grants)
        return grants

    @precondition(lambda self: self.pool.free)
    @rule(target=holders)
    def take_all_that_is_left(self) -> list[Grant]:
        grants = self.pool.grant(self.pool.free)
        assert grants
        assert self.pool.free == 0
        assert self.pool.grant(1) is None
        self.live.append(grants)
        return grants

    @rule(target=holders, grants=holders)
    def share(self, grants: list[Grant]) -> list[Grant]:
        shared = [self.pool.share(grant) for grant in grants]
        assert shared == grants
        self.live.append(shared)
        return shared

    @rule(grants=consumes(holders))
    def release(self, grants: list[Grant]) -> None:
        self._forget(grants)
        assert self.pool.release(grants) == []

    @rule(grants=consumes(holders))
    def quarantine(self, grants: list[Grant]) -> None:
        self._forget(grants)
        shared = {grant.page for other in self.live for grant in other}
        alone = [grant.page for grant in grants if grant.page not in shared]
        before = self.pool.quarantined
        assert self.pool.quarantine(grants) == []
        assert self.pool.quarantined == before + len(alone)

    @invariant()
    def holds(self) -> None:
        self.pool.check_integrity(self.live)
        assert self.pool.free + self.pool.used + self.pool.quarantined == PAGES
        for grants in self.live:
            assert all(self.pool.tracker.page_tags[grant.page] == grant.tag for grant in grants)

    def _forget(self, grants: list[Grant]) -> None:
        del self.live[next(place for place, each in enumerate(self.live) if each is grants)]


class FaultyPoolMachine(RuleBasedStateMachine):
    """Pages are freed under their holders and granted to others. Nobody else is ever harmed, and nothing raises.

    ``rightful`` counts the holders that each grant still stands for; a grant that nobody counts is stale.
    """

    holders = Bundle("holders")

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(PAGES, PageTagTracker(PAGES))
        self.presented: Counter[Grant] = Counter()
        self.rightful: Counter[Grant] = Counter()
        self.quarantined: set[int] = set()

    @rule(target=holders, count=st.integers(1, 4))
    def grant(self, count: int) -> object:
        grants = self.pool.grant(count)
        if grants is None:
            return multiple()
        assert not self.quarantined & {grant.page for grant in grants}
        self.presented.update(grants)
        self.rightful.update(grants)
        return grants

    @rule(target=holders, grants=holders)
    def share(self, grants: list[Grant]) -> object:
        stale = [grant for grant in grants if not self.rightful[grant]]
        for grant in stale:
            with pytest.raises(ServeError, match="is not held under tag"):
                self.pool.share(grant)
        if stale:
            return multiple()
        self.presented.update(grants)
        self.rightful.update(grants)
        return [self.pool.share(grant) for grant in grants]

    @rule(grants=holders, data=st.data())
    def free_under_its_holder(self, grants: list[Grant], data: st.DataObject) -> None:
        grant = data.draw(st.sampled_from(grants))
        assert self.pool.release([grant]) == self._let_go([grant])[1]

    @rule(grants=consumes(holders))
    def release(self, grants: list[Grant]) -> None:
        self.presented.subtract(grants)
        assert self.pool.release(grants) == self._let_go(grants)[1]

    @rule(grants=consumes(holders))
    def quarantine(self, grants: list[Grant]) -> None:
        self.presented.subtract(grants)
        emptied, stale = self._let_go(grants)
        self.quarantined |= emptied
        assert self.pool.quarantine(grants) == stale

    @invariant()
    def holds(self) -> None:
        assert self.pool.quarantined == len(self.quarantined)
        assert self.pool.free + self.pool.used + self.pool.quarantined == PAGES
        for page, tag in +self.rightful:
            assert self.pool.tracker.page_tags[page] == self.pool.tracker.issued(page) == tag
        if +self.presented == +self.rightful:
            self.pool.check_integrity([self.presented.elements()])
        else:
            with pytest.raises(ServeError, match="inconsistent"):
                self.pool.check_integrity([self.presented.elements()])

    def _let_go(self, grants: list[Grant]) -> tuple[set[int], list[Grant]]:
        emptied, stale = set(), []
        for grant in grants:
            if not self.rightful[grant]:
                stale.append(grant)
                continue
            self.rightful[grant] -= 1
            if not self.rightful[grant]:
                emptied.add(grant.page)
        return emptied, stale


class SchedulerMachine(RuleBasedStateMachine):
    """Requests come, run, finish, are cancelled and condemned. One that can run is never blocked for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.arrivals = 0

    @initialize(batch=st.integers(1, 4), budget=st.integers(1, 9))
    def start(self, batch: int, budget: int) -> None:
        pool = PagePool(PAGES, PageTagTracker(PAGES))
        self.budget, self.batch = budget, batch
        self.scheduler = Scheduler(pool, page_tokens=4, max_batch_size=batch, max_num_tokens=budget)

    @rule(prompt=st.integers(1, 30), new=st.integers(1, 20))
    def arrive(self, prompt: int, new: int) -> None:
        sequence = a_sequence(str(self.arrivals), prompt, new)
        sequence.arrival = self.arrivals
        if sequence.cache_tokens <= self.scheduler.usable_tokens:
            self.arrivals += 1
            self.scheduler.add(sequence)

    @rule()
    def step(self) -> None:
        first = next(iter((*self.scheduler.running, *self.scheduler.waiting)), None)
        batch, _ = self.scheduler.schedule()
        counts = Counter({sequence.request_id: count for sequence, count in batch.runs})
        assert len(counts) == len(batch.runs) <= self.batch
        assert sum(counts.values()) == len(batch.token_ids) <= self.budget
        if first is not None:
            assert batch.runs, "there is work, and nothing runs"
        sampled = batch.sampled
        for sequence, count in batch.runs:
            assert len(sequence.grants) * 4 >= sequence.computed + count
            sequence.computed += count
        for sequence in sampled:
            sequence.tokens.append(0)
            if sequence.generated == sequence.max_new:
                self.scheduler.finish(sequence)

    @rule(data=st.data(), condemn=st.booleans())
    def end_one(self, data: st.DataObject, condemn: bool) -> None:
        live = [*self.scheduler.running, *self.scheduler.waiting]
        if not live:
            return
        sequence = data.draw(st.sampled_from(live))
        if condemn and self.scheduler.pool.quarantined < PAGES // 2:
            self.scheduler.condemn(sequence)
        else:
            self.scheduler.finish(sequence)
        for waiting in self.scheduler.hopeless():
            self.scheduler.finish(waiting)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        self.scheduler.check_integrity()
        assert told(self.scheduler.page_holders()) == kept(self.scheduler)
        order = [int(sequence.request_id) for sequence in (*self.scheduler.running, *self.scheduler.waiting)]
        assert order == sorted(order), "someone was overtaken"


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=40, stateful_step_count=40)
TestFaultyPool = FaultyPoolMachine.TestCase
TestFaultyPool.settings = settings(max_examples=40, stateful_step_count=40)
TestScheduler = SchedulerMachine.TestCase
TestScheduler.settings = settings(max_examples=40, stateful_step_count=40)


def a_sequence(name: str, prompt: int, new: int) -> Sequence:
    """A sequence whose tokens mean nothing."""
    params = SamplingParams(max_tokens=new)
    text = TextStream(cast(EngineTokenizer, None), ())  # nothing is decoded here
    return Sequence(name, [0] * prompt, prompt, new, params, SamplingState(params), text)


@pytest.mark.parametrize("tracker", [PageTagTracker(2), NullTracker()])
def test_a_page_without_a_holder_is_left_alone(tracker: Tracker) -> None:
    pool = PagePool(2, tracker)
    (grant,) = pool.grant(1) or []
    assert pool.release([grant]) == []
    for stale in (grant, Grant(-1, grant.tag), Grant(2, grant.tag)):
        assert pool.release([stale]) == pool.quarantine([stale]) == [stale]
        with pytest.raises(ServeError, match="is not held under tag"):
            pool.share(stale)
    assert (pool.free, pool.quarantined) == (2, 0)
    pool.check_integrity([])


def test_without_tags_pages_are_let_go_by_number() -> None:
    pool = PagePool(3, NullTracker())
    grants = pool.grant(3) or []
    pool.share(grants[0])
    assert pool.quarantine(grants[:2]) == []
    pool.check_integrity([[grants[0]], [grants[2]]])
    assert pool.release([grants[0], grants[2]]) == []
    assert (pool.free, pool.quarantined) == (2, 1)


def test_a_page_granted_twice_is_the_second_holder_s() -> None:
    pool = PagePool(2, PageTagTracker(2))
    (first,) = pool.grant(1) or []
    pool._free.appendleft(first.page)  # a fault
    (second,) = pool.grant(1) or []
    assert second.page == first.page
    with pytest.raises(ServeError, match=f"page 0 is held under tag {first.tag}, issued is {second.tag}"):
        pool.check_integrity([[first], [second]])
    assert pool.quarantine([first]) == [first]
    pool.check_integrity([[second]])


def test_a_quarantined_page_leaves_the_free_list_that_a_fault_put_it_on() -> None:
    pool = PagePool(2, PageTagTracker(2))
    grants = pool.grant(1) or []
    pool._free.append(grants[0].page)  # a fault
    pool.quarantine(grants)
    pool.check_integrity([])
    assert (pool.free, pool.quarantined) == (1, 1)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda pool: pool._free.append(pool._free[0]), "page 1 is twice in the free list"),
        (lambda pool: pool._free.append(0), "page 0 is free and held"),
        (lambda pool: pool._free.remove(2), "page 2 is lost"),
        (lambda pool: pool._quarantined.add(1), "page 1 is quarantined and free"),
        (lambda pool: pool._holders.__setitem__(0, 2), "page 0 counts 2 holders, 1 hold it"),
        (lambda pool: pool.tracker.grant(0), "page 0 is held under tag 1, issued is 2"),
        (lambda pool: pool.tracker.page_tags.__setitem__(2, 9), "page 2 is not held and carries tag 9"),
        (lambda pool: pool.tracker.page_tags.__setitem__(0, 0), "page 0 is held without a tag"),
    ],
)
def test_every_violation_is_named(damage: object, problem: str) -> None:
    pool = PagePool(3, PageTagTracker(3))
    grants = pool.grant(1)
    assert grants == [Grant(0, 1)]
    pool.check_integrity([grants])
    damage(pool)  # type: ignore[operator]
    with pytest.raises(ServeError, match=problem):
        pool.check_integrity([grants])
