"""Whole schedules on the twins: nothing is stopped without a reason, and nothing wrong comes out."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import pytest
from executor_twins import (
    PAGE_TOKENS,
    CopiedUnseenError,
    KVCacheManager,
    LlmRequest,
    PyExecutor,
    ScheduledRequests,
    expected_answer,
)
from guarding import Guarded, make_guarded
from hypothesis import given, settings
from hypothesis import strategies as st

from roundhouse.errors import ServeError, SetupError

SEEDS = st.integers(0, 2**32 - 1)
BREAKS_DOWN = (IndexError, RecursionError, CopiedUnseenError)
"""What a manager raises whose own books are wrong enough."""


class Traffic:
    """Requests that begin alike, come, are cancelled, are paused, and take tokens back."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.sent: dict[int, LlmRequest] = {}
        self.prompts: list[list[int]] = [[draw.randrange(5) for _ in range(draw.randint(6, 20))] for _ in range(2)]

    def request(self) -> LlmRequest:
        draw = self.draw
        earlier = draw.choice([*self.prompts, *(request.tokens for request in self.sent.values())])
        prompt = earlier[: draw.randint(1, len(earlier))] + [draw.randrange(5) for _ in range(draw.choice([0, 0, 1, 5]))]
        made = LlmRequest(
            len(self.sent) + 1,
            prompt[:40],
            draw.randint(1, 12),
            salt=draw.choice([None, None, 7]),
            drafts=draw.choice([0, 0, 0, 2]),
        )
        self.sent[made.py_request_id] = made
        return made

    def play(self, engine: Guarded, steps: int, fault: Callable[[], None] = lambda: None, chance: float = 0.0) -> None:
        executor, draw = engine.executor, self.draw
        for _ in range(steps):
            if draw.random() < 0.5 and len(executor.active_requests) < 8:
                engine.submit(self.request())
            if executor.active_requests and draw.random() < 0.06:
                executor.cancel(draw.choice(executor.active_requests))
            if executor.active_requests and draw.random() < 0.06:
                executor.pause(draw.choice(executor.active_requests))
            if draw.random() < chance:
                fault()
            executor.step()

    def wrong_answers(self, executor: PyExecutor) -> list[int]:
        answers = executor.answers.items()
        return [number for number, answer in answers if answer != expected_answer(self.sent[number].prompt, len(answer))]


@settings(max_examples=40)
@given(seed=SEEDS, reuse=st.booleans(), chunk=st.sampled_from([PAGE_TOKENS, 3 * PAGE_TOKENS, 1000]))
def test_without_a_fault_nothing_is_stopped_and_every_step_is_checked(seed: int, reuse: bool, chunk: int) -> None:
    engine = make_guarded(pages=24, reuse=reuse, chunk=chunk, batch=4)
    traffic = Traffic(random.Random(seed))
    traffic.play(engine, 40)
    engine.drain()
    assert engine.events == []
    assert engine.executor.errors == {}
    assert traffic.wrong_answers(engine.executor) == []
    state = engine.check.state
    assert (state.unguarded, state.steps) == (False, engine.executor.steps_run)
    assert state.checks >= state.steps
    assert not engine.manager.page_book.counts().used


FAULTS: dict[str, Callable[..., None]] = {}


def fault(make: Callable[..., None]) -> Callable[..., None]:
    FAULTS[make.__name__] = make
    return make


@fault
def freed_early(engine: Guarded, draw: random.Random) -> None:
    held = [block for sequence in engine.blocks.sequences.values() for block in sequence]
    if held:
        block = draw.choice(held)
        block.refs = 0
        if block not in engine.blocks.free:
            engine.blocks.free.appendleft(block)


@fault
def granted_twice(engine: Guarded, draw: random.Random) -> None:
    held = [block for sequence in engine.blocks.sequences.values() for block in sequence]
    if held:
        engine.blocks.free.appendleft(draw.choice(held))


@fault
def stale_cell(engine: Guarded, draw: random.Random) -> None:
    if sequences := [sequence for sequence in engine.blocks.sequences.values() if sequence]:
        sequence = draw.choice(sequences)
        sequence[draw.randrange(len(sequence))] = draw.choice(engine.blocks.all)


@fault
def rows_swapped(engine: Guarded, draw: random.Random) -> None:
    sequences = list(engine.blocks.sequences)
    if len(sequences) > 1:
        one, other = draw.sample(sequences, 2)
        table = engine.blocks.sequences
        table[one], table[other] = table[other], table[one]


@fault
def found_for_another_prefix(engine: Guarded, draw: random.Random) -> None:
    found = list(engine.blocks.root.next)
    if len(found) > 1:
        one, other = draw.sample(found, 2)
        tree = engine.blocks.root.next
        tree[one], tree[other] = tree[other], tree[one]


@fault
def found_after_it_was_granted(engine: Guarded, draw: random.Random) -> None:
    """A free block comes next, and stays in the tree when it is granted."""
    found = [block for block in engine.blocks.root.next.values() if block in engine.blocks.free]
    if found:
        block = draw.choice(found)
        block.previous = None
        engine.blocks.free.remove(block)
        engine.blocks.free.appendleft(block)


@pytest.mark.parametrize("kind", FAULTS)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_with_faults_nothing_wrong_comes_out(kind: str, seed: int) -> None:
    engine = make_guarded(pages=24, batch=4)
    draw = random.Random(seed)
    traffic = Traffic(draw)
    with contextlib.suppress(*BREAKS_DOWN):
        traffic.play(engine, 30, lambda: FAULTS[kind](engine, draw), 0.2)
    assert traffic.wrong_answers(engine.executor) == []
    assert set(engine.executor.errors) == {int(event.request_id) for event in engine.events}
    assert all("integrity event" in error for error in engine.executor.errors.values())
    assert not engine.check.state.unguarded


@pytest.mark.parametrize("kind", FAULTS)
def test_the_same_faults_give_wrong_answers_where_nobody_looks(kind: str) -> None:
    for seed in range(200):
        engine = make_guarded(pages=24, batch=4, guard=False)
        draw = random.Random(seed)
        traffic = Traffic(draw)
        with contextlib.suppress(*BREAKS_DOWN):
            traffic.play(engine, 30, lambda engine=engine, draw=draw: FAULTS[kind](engine, draw), 0.2)
        if traffic.wrong_answers(engine.executor):
            return
    raise AssertionError(f"{kind} harms nobody: the test above could not fail")


def test_who_presents_another_s_page_is_stopped_and_the_others_go_on() -> None:
    engine = make_guarded()
    victim, other = LlmRequest(1, [1, 2, 3, 4, 1, 2], 6), LlmRequest(2, [4, 3, 2, 1, 0], 6)
    engine.submit(victim, other)
    engine.executor.step()
    page = engine.blocks.sequences[2][0]

    def swap(batch: ScheduledRequests) -> None:
        engine.blocks.sequences[1][1] = page

    engine.executor.between = swap
    engine.executor.step()
    engine.executor.between = lambda batch: None
    engine.drain()
    (event,) = engine.events
    assert (event.request_id, event.column, event.page, event.kind) == ("1", 1, page.id, "tag")
    assert event.last_holders[0].request_id == "2"
    assert event.expected_tag != event.found_tag
    assert f"integrity event {event.event}" in engine.executor.errors[1]
    assert "2" not in engine.executor.errors[1].split("(")[0].replace("KV page at column 1", "")
    assert engine.executor.answers == {2: expected_answer([4, 3, 2, 1, 0], 6)}


@settings(max_examples=30)
@given(seed=SEEDS)
def test_what_the_tree_is_given_before_it_is_computed_nobody_reads(seed: int) -> None:
    engine = make_guarded(pages=200, chunk=PAGE_TOKENS, batch=4, early=True)
    traffic = Traffic(random.Random(seed))
    traffic.play(engine, 30)
    assert traffic.wrong_answers(engine.executor) == []


def test_whose_prompt_is_found_too_early_goes_on() -> None:
    engine = make_guarded(chunk=PAGE_TOKENS, early=True)
    prompt = [1, 2, 3, 4, 4, 3, 2, 1, 1, 2, 3, 4, 0]
    engine.submit(LlmRequest(1, prompt, 3))
    engine.executor.step()
    engine.submit(LlmRequest(2, prompt, 3))
    engine.drain()
    assert engine.executor.errors.keys() == {2}
    assert engine.executor.answers == {1: expected_answer(prompt, 3)}


def test_the_only_request_of_a_batch_may_be_stopped() -> None:
    engine = make_guarded()
    engine.submit(LlmRequest(1, [1, 2, 3], 4))
    engine.executor.step()
    engine.manager.page_book.tracker.page_tags[:] = 0
    engine.executor.step()
    assert engine.executor.errors.keys() == {1}
    assert engine.executor.active_requests == []
    assert engine.executor.steps_run == 1
    assert not engine.check.state.unguarded


def test_a_table_that_is_too_short_for_the_step_is_a_mismatch() -> None:
    engine = make_guarded()
    engine.submit(LlmRequest(1, [1, 2, 3, 4, 0], 6))
    engine.executor.step()
    engine.executor.between = lambda batch: engine.blocks.sequences[1].pop() and None
    engine.executor.step()
    (event,) = engine.events
    assert (event.kind, event.column, event.page) == ("count", 1, None)


def test_pages_of_a_stopped_request_are_never_granted_or_found_again() -> None:
    engine = make_guarded(pages=12)
    prompt = [1, 2, 3, 4, 1, 2, 3, 4, 0]
    engine.submit(LlmRequest(1, prompt, 4))
    engine.executor.step()
    held = {block.id for block in engine.blocks.sequences[1]}
    spoiled = engine.blocks.sequences[1][0].id
    engine.manager.page_book.tracker.page_tags[spoiled] = 99
    engine.executor.step()
    for number in range(2, 12):
        engine.submit(LlmRequest(number, prompt, 4))
        engine.executor.step()
        assert not held & {block.id for block in engine.blocks.sequences[number]}
        engine.drain()
    assert engine.executor.errors.keys() == {1}
    assert engine.manager.page_book.counts().quarantined == len(held)


def test_a_chunk_that_is_said_to_be_longer_than_its_prompt_is_not_missed() -> None:
    engine = make_guarded()
    request = LlmRequest(1, [1, 2, 3], 4)
    engine.submit(request)
    batch = engine.executor._schedule()
    engine.manager.prepare_resources(batch)
    request.context_chunk_size = 1000
    engine.check.before_step(engine.executor, batch)
    assert engine.events == []
    assert batch.all_requests() == [request]


def test_a_prompt_is_stopped_that_the_tree_gives_a_page_of_another_tenant() -> None:
    engine = make_guarded()
    prompt = [1, 2, 3, 4, 1, 2, 3, 4, 0]
    engine.submit(LlmRequest(1, prompt, 1, salt=1))
    engine.drain()
    engine.blocks.root.next = {((None, 2), key[1]): block for key, block in engine.blocks.root.next.items()}
    engine.submit(LlmRequest(2, prompt, 1, salt=2), LlmRequest(3, prompt, 1))
    engine.drain()
    assert engine.executor.errors.keys() == {2}
    assert engine.executor.answers[3] == expected_answer(prompt, 1)


def test_a_prefix_is_shared_under_the_tag_it_was_stored_with() -> None:
    engine = make_guarded()
    prompt = [1, 2, 3, 4, 1, 2, 3, 4, 0]
    engine.submit(LlmRequest(1, prompt, 3))
    engine.drain()
    tags = engine.manager.page_book.tracker.page_tags.copy()
    shared = LlmRequest(2, prompt, 3)
    engine.submit(shared)
    engine.executor.step()
    assert shared.prepopulated_prompt_len == 2 * PAGE_TOKENS
    pages = [block.id for block in engine.blocks.sequences[2][:2]]
    assert (engine.manager.page_book.tracker.page_tags[pages] == tags[pages]).all()
    assert engine.manager.page_book.counts().used == 3
    engine.drain()
    assert engine.events == []


def test_a_prompt_that_continues_a_whole_answer_takes_its_last_page_over_under_a_new_tag() -> None:
    engine = make_guarded()
    first = LlmRequest(1, [1, 2, 3, 4, 0], 6)
    engine.submit(first)
    engine.drain()
    again = LlmRequest(2, first.tokens, 4)
    engine.submit(again)
    engine.executor.step()
    assert again.prepopulated_prompt_len == len(first.tokens) - 1
    assert again.prepopulated_prompt_len % PAGE_TOKENS
    engine.drain()
    assert engine.events == []
    assert engine.executor.answers[2] == expected_answer(first.tokens, 4)


def test_a_dummy_takes_a_page_away_from_whoever_had_it() -> None:
    engine = make_guarded()
    engine.submit(LlmRequest(1, [1, 2, 3], 4))
    engine.executor.step()
    engine.blocks.free.appendleft(engine.blocks.sequences[1][0])
    (dummy,) = engine.manager.add_dummy_requests([2**64 - 1], [3], True)
    assert engine.manager.add_dummy_requests([7], prepare_resource=False) is not None
    engine.executor.step()
    assert engine.executor.errors.keys() == {1}
    engine.manager.free_resources(dummy)
    assert not engine.manager.page_book.counts().cached


def test_dummies_in_a_batch_are_not_compared() -> None:
    engine = make_guarded()
    dummy, real = LlmRequest(1, [1, 2, 3], 2), LlmRequest(2, [1, 2, 3], 2)
    dummy.is_dummy_request = True
    engine.submit(dummy, real)
    engine.executor.step()
    assert engine.manager.page_book.counts().used == 1
    engine.drain()
    assert engine.events == []


def test_a_step_that_was_not_checked_is_told_for_ever() -> None:
    engine = make_guarded()
    engine.submit(LlmRequest(1, [1, 2, 3], 4))
    engine.executor.step()
    assert engine.check.state.problem() is not None  # the ranks have not agreed
    engine.check.state.ranks = 1
    assert engine.check.state.problem() is None
    type(engine.executor)._kv_connector_start_batch = type(engine.executor).__mro__[1]._kv_connector_start_batch
    engine.executor.step()
    problem = engine.check.state.problem()
    assert problem is not None
    assert "without the page check" in problem


def test_an_executor_with_another_manager_runs_nothing() -> None:
    engine = make_guarded()
    engine.executor.kv_cache_manager = KVCacheManager()
    engine.submit(LlmRequest(1, [1, 2, 3], 4))
    with pytest.raises(ServeError, match="does not note its grants"):
        engine.executor.step()
    assert engine.executor.steps_run == 0


def test_a_model_with_attention_windows_is_refused() -> None:
    with pytest.raises(SetupError, match="attention windows"):
        make_guarded(window=64)


def test_the_connector_keeps_nothing_of_any_request() -> None:
    engine = make_guarded()
    connector = engine.executor.kv_connector_manager
    told: list[dict[int, int]] = []
    engine.executor.between = lambda batch: told.append(dict(connector.external_loads))
    for number in (1, 2):
        engine.submit(LlmRequest(number, [1, 2, number], 2))
        engine.drain()
    assert (told, connector.copied) == ([{}] * 4, {})
