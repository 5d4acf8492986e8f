"""What a step runs: packed arrays, chunks, arrival order, and the wait for pages."""

from __future__ import annotations

from typing import cast

from roundhouse.plugins.page_tag import PageTagTracker
from roundhouse.serve.engine.batch import StepBatch, make_batch
from roundhouse.serve.engine.detokenize import TextStream
from roundhouse.serve.engine.pool import Grant, PagePool
from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.engine.sampling_state import SamplingState
from roundhouse.serve.engine.scheduler import Scheduler
from roundhouse.serve.engine.sequence import Sequence
from roundhouse.serve.engine.tokenizer import EngineTokenizer


def sequence(name: str, prompt: int, new: int = 4, **state: object) -> Sequence:
    params = SamplingParams(max_tokens=new)
    text = TextStream(cast(EngineTokenizer, None), ())  # nothing is decoded here
    tokens = [100 + position for position in range(prompt)]
    made = Sequence(name, tokens, prompt, new, params, SamplingState(params), text)
    for key, value in state.items():
        setattr(made, key, value)
    return made


def scheduler(pages: int = 8, *, batch: int = 4, budget: int = 10, reuse: bool = False, chunks: bool = True) -> Scheduler:
    pool = PagePool(pages, PageTagTracker(pages))
    return Scheduler(
        pool,
        page_tokens=4,
        max_batch_size=batch,
        max_num_tokens=budget,
        prefix_reuse=reuse,
        chunked_prompts=chunks,
    )


def run(each: Scheduler) -> dict[str, int]:
    """One step of a model that says 1 after everything."""
    batch, _ = each.schedule()
    sampled = batch.sampled
    each.computed(batch)
    for made in sampled:
        made.tokens.append(1)
    each.check_integrity()
    return names(batch)


def names(batch: StepBatch) -> dict[str, int]:
    return {sequence.request_id: count for sequence, count in batch.runs}


def test_a_batch_packs_tokens_positions_and_tables() -> None:
    chunk = sequence("chunk", 6, computed=2, grants=[Grant(5, 50), Grant(3, 30)])
    decoding = sequence("decoding", 3, computed=2, grants=[Grant(7, 70)])
    batch = make_batch([(chunk, 3), (decoding, 1)])
    assert names(batch) == {"decoding": 1, "chunk": 3}
    assert batch.token_ids.tolist() == [102, 102, 103, 104]
    assert batch.positions.tolist() == [2, 2, 3, 4]
    assert batch.query_start.tolist() == [0, 1, 4]
    assert batch.context_len.tolist() == [3, 5]
    assert batch.page_table.tolist() == [[7, -1], [5, 3]]
    assert batch.page_count.tolist() == [1, 2]
    assert batch.expected_tags.tolist() == [[70, 0], [50, 30]]
    assert batch.sample_rows.tolist() == [0]
    assert batch.sampled == [decoding]
    assert [array.dtype.name for array in (batch.token_ids, batch.page_table, batch.expected_tags, batch.sample_rows)] == [
        "int64",
        "int32",
        "int32",
        "int64",
    ]


def test_a_batch_without_rows() -> None:
    first, second = sequence("a", 2, grants=[Grant(0, 1)]), sequence("b", 3, grants=[Grant(1, 2)])
    batch = make_batch([(first, 2), (second, 3)])
    assert names(batch.without({0})) == {"b": 3}
    empty = batch.without({0, 1})
    assert empty.runs == ()
    assert empty.page_table.shape == (0, 0)
    assert empty.query_start.tolist() == [0]


def test_a_prompt_larger_than_the_budget_runs_in_chunks_and_is_sampled_once_at_its_end() -> None:
    each = scheduler(budget=10)
    long = sequence("long", 25)
    each.add(long)
    chunks = []
    while not (batch := each.schedule()[0]).sampled:
        chunks.append(names(batch)["long"])
        long.computed += chunks[-1]
    assert chunks == [10, 10]
    assert names(batch) == {"long": 5}


def test_decoding_comes_before_prompts_and_prompts_share_what_is_left() -> None:
    each = scheduler(budget=10)
    for made in (sequence("a", 3), sequence("b", 12), sequence("c", 4)):
        each.add(made)
    first, admitted = each.schedule()
    assert names(first) == {"a": 3, "b": 7}
    assert [made.request_id for made in admitted] == ["a", "b"]
    for made, count in first.runs:
        made.computed += count
    each.running[0].tokens.append(1)
    assert names(each.schedule()[0]) == {"a": 1, "b": 5, "c": 4}


def test_pages_are_granted_for_the_prompt_at_admission_and_one_by_one_afterwards() -> None:
    each = scheduler(pages=8)
    made = sequence("a", 7, new=8)
    each.add(made)
    held = []
    for _ in range(5):
        run(each)
        held.append((made.computed, len(made.grants)))
    assert held == [(7, 2), (8, 2), (9, 3), (10, 3), (11, 3)]


def test_the_head_of_the_line_waits_and_is_not_overtaken() -> None:
    each = scheduler(pages=8, budget=100)
    for made in (sequence("a", 17), sequence("large", 12), sequence("small", 1, new=1)):
        each.add(made)
    assert run(each) == {"a": 17}
    assert [made.request_id for made in each.waiting] == ["large", "small"]
    each.finish(each.running[0])
    assert run(each) == {"large": 12, "small": 1}


def test_smaller_priority_runs_first_and_equal_ones_in_order_of_arrival() -> None:
    each = scheduler(pages=8, batch=1, budget=100)
    for arrival, (name, priority) in enumerate([("late", 1), ("first", 0), ("second", 0), ("urgent", -1)]):
        each.add(sequence(name, 2, new=1, priority=priority, arrival=arrival))
    order = []
    while each.waiting:
        order += list(run(each))
        each.finish(each.running[0])
    assert order == ["urgent", "first", "second", "late"]


def test_the_last_in_order_gives_its_pages_to_the_first_and_is_computed_again() -> None:
    each = scheduler(pages=4, budget=100)
    first, last = sequence("first", 7, new=8, arrival=1), sequence("last", 4, new=8, arrival=2)
    for made in (last, first):
        each.add(made)
    assert run(each) == {"first": 7, "last": 4}
    assert run(each) == {"first": 1, "last": 1}
    assert each.pool.free == 0
    assert run(each) == {"first": 1}  # its ninth token needs a page: the other's are taken
    assert (each.preemptions, last.computed, last.grants, each.waiting) == (1, 0, [], [last])
    assert first.remaining == 1
    each.finish(first)
    assert run(each) == {"last": 6}  # its prompt and both tokens that it had generated
    assert last.tokens[4:] == [1, 1, 1]


def test_a_preempted_sequence_comes_before_those_that_came_later() -> None:
    each = scheduler(pages=4, budget=100, batch=2)
    for arrival, (name, tokens) in enumerate([("a", 7), ("b", 4), ("c", 1)]):
        each.add(sequence(name, tokens, new=8, arrival=arrival))
    run(each)
    run(each)
    run(each)
    assert [made.request_id for made in each.waiting] == ["b", "c"]


def test_a_prompt_finds_the_pages_of_one_that_began_alike() -> None:
    each = scheduler(pages=8, budget=100, reuse=True)
    each.add(sequence("a", 10, new=1))
    run(each)
    each.finish(each.running[0])
    assert (each.pool.free, each.cache.evictable) == (6, 2)
    again = sequence("again", 10, new=1)
    each.add(again)
    assert run(each) == {"again": 2}  # two full pages were there
    assert again.cached_tokens == 8
    other = sequence("salted", 10, new=1, root=b"another salt")
    each.add(other)
    assert run(each)["salted"] == 10


def test_the_last_token_of_a_prompt_always_runs() -> None:
    each = scheduler(pages=8, budget=100, reuse=True)
    for name in ("a", "b"):
        each.add(sequence(name, 8, new=1))
        assert run(each) == {name: 8 if name == "a" else 4}
        each.finish(each.running[0])


def test_what_the_cache_alone_holds_is_given_up_before_anybody_is_preempted() -> None:
    each = scheduler(pages=4, budget=100, reuse=True)
    each.add(sequence("old", 12, new=1))
    run(each)
    each.finish(each.running[0])
    assert each.cache.evictable == 3
    fresh = sequence("fresh", 13, new=1, root=b"another salt")
    each.add(fresh)
    assert run(each) == {"fresh": 13}
    assert each.preemptions == 0


def test_answers_of_one_request_wait_for_the_first_and_share_its_prompt() -> None:
    each = scheduler(pages=16, budget=6, reuse=True)
    first = sequence("r", 10)
    second = sequence("r", 10, index=1, leader=first)
    for made in (first, second):
        each.add(made)
    assert [count for _, count in each.schedule()[0].runs] == [6]
    each = scheduler(pages=16, budget=6, reuse=True)
    first = sequence("first", 10)
    second = sequence("second", 10, index=1, leader=first)
    for made in (first, second):
        each.add(made)
    assert run(each) == {"first": 6}
    assert run(each) == {"first": 4}
    assert run(each) == {"first": 1, "second": 2}
    assert first.grants[:2] == second.grants[:2]
    assert first.grants[2] != second.grants[2]


def test_a_prompt_that_may_not_be_cut_waits_for_a_step_with_room_for_all_of_it() -> None:
    each = scheduler(pages=16, budget=10, chunks=False)
    for arrival, (name, tokens) in enumerate([("a", 6), ("b", 10), ("c", 1)]):
        each.add(sequence(name, tokens, new=3, arrival=arrival))
    assert run(each) == {"a": 6}  # nobody overtakes b
    assert run(each) == {"a": 1}
    each.finish(each.running[0])
    assert run(each) == {"b": 10}
    assert run(each) == {"b": 1, "c": 1}


def test_a_preempted_one_that_may_not_be_cut_is_computed_again_in_one_piece() -> None:
    each = scheduler(pages=4, budget=10, chunks=False)
    for arrival, name in enumerate("ab"):
        each.add(sequence(name, 4, new=8, arrival=arrival))
    counts = [run(each) for _ in range(6)]
    assert each.preemptions == 1
    assert counts[-1] == {"a": 1}
    each.finish(each.running[0])
    lost = len(each.waiting[0].tokens)
    assert 4 < lost <= 10
    assert run(each) == {"b": lost}


def test_batch_slots_are_limited() -> None:
    each = scheduler(pages=8, batch=2, budget=100)
    for name in "abc":
        each.add(sequence(name, 2, new=1))
    assert names(each.schedule()[0]) == {"a": 2, "b": 2}


def test_quarantine_makes_large_requests_impossible() -> None:
    each = scheduler(pages=4)
    victim, large = sequence("victim", 4, new=1), sequence("large", 13)
    each.add(victim)
    each.schedule()
    each.add(large)
    assert each.hopeless() == []
    each.condemn(victim)
    assert each.pool.quarantined == 1
    assert each.hopeless() == [large]


def test_nobody_waits_for_a_page_that_a_fault_lost() -> None:
    each = scheduler(pages=4, batch=1)
    victim, large = sequence("victim", 4, new=1), sequence("large", 13)
    each.add(victim)
    each.add(large)
    each.schedule()
    assert each.hopeless() == []
    victim.grants[0] = Grant(3, 77)  # page 0 is now held by nobody who could give it back
    each.finish(victim)
    assert each.hopeless() == [large]
