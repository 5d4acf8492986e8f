"""Requests of a workload."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.benchmark.prompts import PlannedRequest, plan_requests
from roundhouse.serve.benchmark.workload import Workload

WORKLOADS = st.builds(
    Workload,
    input_tokens=st.integers(20, 60),
    output_tokens=st.integers(1, 40),
    input_spread=st.integers(0, 30),
    output_spread=st.integers(0, 30),
    prefix_tokens=st.integers(0, 15),
    prefixes=st.integers(1, 3),
    cancel_share=st.floats(0, 0.9),
)


def plan(workload: Workload, count: int = 8, seed: int = 1, longest: int = 100) -> list[PlannedRequest]:
    return plan_requests(workload, count, seed=seed, vocab=512, longest=longest)


@given(WORKLOADS, st.integers(1, 20), st.integers(0, 2**31))
def test_requests_are_what_was_asked_for_and_the_same_for_a_seed(workload: Workload, count: int, seed: int) -> None:
    planned = plan(workload, count, seed)
    assert planned == plan(workload, count, seed)
    assert len(planned) == count
    for each in planned:
        assert each.output_tokens >= 1
        assert len(each.prompt_ids) > workload.prefix_tokens
        assert len(each.prompt_ids) + each.output_tokens <= 100
        assert all(0 <= token < 512 for token in each.prompt_ids)
    if not workload.input_spread:
        assert {len(each.prompt_ids) for each in planned} == {workload.input_tokens}
    if not workload.output_spread:
        assert {each.output_tokens for each in planned} == {workload.output_tokens}
    beginnings = {tuple(each.prompt_ids[: workload.prefix_tokens]) for each in planned}
    assert len(beginnings) <= workload.prefixes
    assert sum(each.cancel_after_s is not None for each in planned) == round(count * workload.cancel_share)


def test_no_prompt_comes_twice() -> None:
    prompts = sorted(each.prompt_ids for seed in (1, 2) for each in plan(Workload(input_tokens=16), seed=seed))
    assert all(one != other for one, other in pairwise(prompts))


def test_conversations_are_all_asked_before_one_comes_again() -> None:
    workload = Workload(kind="conversations", file="talk.jsonl", output_tokens=30)
    given_prompts = [[number] * (20 * number) for number in (1, 2, 3)]
    planned = plan_requests(workload, 7, seed=3, vocab=512, longest=70, conversations=lambda: given_prompts)
    firsts = [each.prompt_ids[0] for each in planned]
    assert sorted(firsts[:3]) == sorted(firsts[3:6]) == [1, 2, 3]
    assert {len(each.prompt_ids): each.output_tokens for each in planned} == {20: 30, 40: 30, 60: 10}
