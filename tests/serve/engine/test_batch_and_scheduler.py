"""What a step runs: packed arrays, chunks, arrival order, and the wait for pages."""

from __future__ import annotations

from typing import cast

from roundhouse.plugins.page_tag import PageTagTracker
from roundhouse.serve.engine.batch import StepBatch, make_batch
from roundhouse.serve.engine.detokenize import TextStream
from roundhouse.serve.engine.pool import Grant, PagePool
from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.engine.sampling import Sampler
from roundhouse.serve.engine.scheduler import Scheduler
from roundhouse.serve.engine.sequence import Sequence
from roundhouse.serve.engine.tokenizer import EngineTokenizer


def sequence(name: str, prompt: int, new: int = 4, **state: object) -> Sequence:
    params = SamplingParams(max_tokens=new)
    text = TextStream(cast(EngineTokenizer, None), ())  # nothing is decoded here
    tokens = [100 + position for position in range(prompt)]
    made = Sequence(name, tokens, prompt, new, params, Sampler(params), text)
    for key, value in state.items():
        setattr(made, key, value)
    return made


def scheduler(pages: int = 8, *, batch: int = 4, budget: int = 10) -> Scheduler:
    return Scheduler(PagePool(pages, PageTagTracker(pages)), page_tokens=4, max_batch_size=batch, max_num_tokens=budget)


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


def test_all_pages_a_sequence_may_need_are_taken_at_admission() -> None:
    each = scheduler(pages=8)
    exact = sequence("exact", 9, new=8)
    each.add(exact)
    each.schedule()
    assert len(exact.grants) == 4  # 16 tokens: the last generated one is never cached
    assert each.pages_for(sequence("more", 9, new=9)) == 5


def test_the_head_of_the_line_waits_and_is_not_overtaken() -> None:
    each = scheduler(pages=8, budget=100)
    for made in (sequence("a", 17), sequence("large", 9, new=4), sequence("small", 1, new=1)):
        each.add(made)
    assert names(each.schedule()[0]) == {"a": 17, "large": 9}
    assert each.pool.free == 0
    assert [made.request_id for made in each.waiting] == ["small"]
    each.finish(each.running[0])
    each.running[0].computed = 9
    assert "small" in names(each.schedule()[0])


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
