"""From requests to a point: known answers, and what never counts."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.benchmark.measuring import MeasuredRequest, percentiles, point_of, prefill_point_of
from roundhouse.serve.benchmark.points import Point, PrefillPoint
from roundhouse.serve.benchmark.workload import Workload

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def done(began: float, first: float, ended: float, tokens: int, prompt: int = 10) -> MeasuredRequest:
    return MeasuredRequest("completed", began, ended, first, prompt, tokens)


def point(*requests: MeasuredRequest) -> Point:
    return point_of(requests, concurrency=2, repeat=0, began_at=NOW, tokens_from="usage")


def test_speeds_and_latencies_are_those_of_the_definitions() -> None:
    it = point(done(100.0, 100.5, 102.5, 5), done(101.0, 102.0, 105.0, 4))
    assert it.duration_s == 5.0
    assert it.output_tokens_per_s == pytest.approx(9 / 5)
    assert it.input_tokens_per_s == pytest.approx(20 / 5)
    assert it.total_tokens_per_s == pytest.approx(29 / 5)
    assert it.requests_per_s == pytest.approx(2 / 5)
    assert it.ttft is not None
    assert it.inter_token is not None
    assert it.end_to_end is not None
    assert (it.ttft.p50, it.ttft.mean, it.ttft.count) == (0.75, 0.75, 2)
    assert it.inter_token.p50 == pytest.approx((2.0 / 4 + 3.0 / 3) / 2)
    assert it.end_to_end.p99 == pytest.approx(2.5 + 0.99 * 1.5)


def test_failed_and_cancelled_requests_are_apart() -> None:
    good = done(0.0, 1.0, 2.0, 8)
    failed = MeasuredRequest("failed", 0.0, 0.0, first_token=0.0, output_tokens=3, error="empty answer")
    cancelled = MeasuredRequest("cancelled", 0.0, 9.0, first_token=0.1, output_tokens=2)
    it, alone = point(good, failed, failed, cancelled), point(good)
    assert it.failed == {"empty answer": 2}
    assert (it.completed, it.cancelled, it.failures, it.output_tokens) == (1, 1, 2, 8)
    assert (it.ttft, it.inter_token, it.end_to_end) == (alone.ttft, alone.inter_token, alone.end_to_end)
    assert it.duration_s == 9.0


def test_nothing_completed_is_no_latency_at_all() -> None:
    it = point(MeasuredRequest("failed", 0.0, 1.0, error="timeout"))
    assert (it.ttft, it.inter_token, it.end_to_end, it.output_tokens_per_s) == (None, None, None, 0)


def test_one_token_has_no_gap_between_tokens() -> None:
    assert point(done(0.0, 1.0, 1.0, 1)).inter_token is None


def test_a_point_of_nothing_is_none() -> None:
    with pytest.raises(ValueError, match="without requests"):
        point()


def prefill(*requests: MeasuredRequest) -> PrefillPoint:
    return prefill_point_of(requests, input_tokens=128, repeat=1, began_at=NOW)


def test_prefill_is_as_fast_as_the_prompts_were_long() -> None:
    it = prefill(done(0.0, 0.5, 0.5, 1, prompt=130), done(1.0, 1.5, 1.5, 1, prompt=150), done(2.0, 2.5, 2.5, 1, prompt=140))
    assert (it.input_tokens, it.measured_tokens, it.requests, it.failed) == (128, 140, 3, {})
    assert it.tokens_per_s == pytest.approx(140 / 0.5)


def test_prompts_that_were_not_answered_are_counted_and_in_no_speed() -> None:
    failed = MeasuredRequest("failed", 0.0, 9.0, error="timeout")
    it = prefill(failed, done(0.0, 0.5, 0.5, 1, prompt=100), MeasuredRequest("completed", 0.0, 1.0))
    assert (it.requests, it.measured_tokens, it.failed, it.failures) == (1, 100, {"timeout": 1, "no first token": 1}, 2)
    nothing = prefill(failed, failed)
    assert (nothing.requests, nothing.ttft, nothing.tokens_per_s, nothing.failed) == (0, None, None, {"timeout": 2})
    with pytest.raises(ValueError, match="without requests"):
        prefill()


def test_where_nobody_counted_the_length_that_was_asked_for_stands() -> None:
    assert prefill(done(0.0, 0.5, 0.5, 1, prompt=0)).tokens_per_s == pytest.approx(128 / 0.5)


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=200))
def test_percentiles_are_numpys_and_in_order(values: list[float]) -> None:
    it = percentiles(values)
    assert it is not None
    assert it.count == len(values)
    found = [it.p50, it.p90, it.p95, it.p99]
    assert found == pytest.approx(list(np.percentile(np.array(values), [50, 90, 95, 99])), rel=1e-9)
    in_order = [min(values), *found, max(values)]
    assert in_order == pytest.approx(sorted(in_order), rel=1e-9)


def test_what_asks_the_same_has_the_same_key_whatever_it_is_called() -> None:
    assert Workload(name="a").key == Workload(name="b").key
    assert Workload(input_tokens=64).key != Workload(input_tokens=65).key
    assert Workload(cancel_share=0.1).key != Workload().key


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (Workload(), "128 in, 64 out"),
        (Workload(input_tokens=512, input_spread=100, output_tokens=8), "512±100 in, 8 out"),
        (Workload(prefix_tokens=100, cancel_share=0.25), "128 in, 64 out, 100 shared, 25% cancelled"),
        (Workload(kind="conversations", file="talk.jsonl"), "conversations of talk.jsonl, 64 out"),
    ],
)
def test_a_workload_in_words(workload: Workload, words: str) -> None:
    assert workload.words == words


@pytest.mark.parametrize("wrong", [{"prefix_tokens": 128}, {"kind": "conversations"}, {"file": "x"}, {"input_tokens": 0}])
def test_workloads_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"prefix_tokens|file|input_tokens"):
        Workload.model_validate(wrong)


def test_requests_of_a_point_follow_its_concurrency() -> None:
    it = Workload(requests_each=3, least_requests=10)
    assert [it.requests(n) for n in (1, 3, 4, 64)] == [10, 10, 12, 192]
