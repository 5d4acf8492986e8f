"""Levels: medians and extremes over repeats."""

from __future__ import annotations

import pytest
from benchmark_runs import made_point, made_prefill

from roundhouse.serve.benchmark.statistics import QUANTITIES, Spread, levels_of, prefill_levels_of


def test_repeats_become_one_level_for_each_concurrency_the_lowest_first() -> None:
    points = [made_point(8, 0, 400), made_point(1, 0, 90), made_point(1, 1, 130), made_point(1, 2, 100)]
    one, eight = levels_of(points)
    assert (one.concurrency, one.repeats) == (1, 3)
    assert one.output_tokens_per_s == Spread(median=100, least=90, most=130)
    assert (eight.concurrency, eight.output_tokens_per_s) == (8, Spread(400, 400, 400))


def test_every_quantity_of_a_point_is_in_a_level() -> None:
    point = made_point(4, 0, 200)
    (level,) = levels_of([point])
    for name, quantity in QUANTITIES.items():
        value = quantity.of(point)
        assert value is not None
        assert level.spread(name) == Spread(value, value, value), name
    assert level.total_tokens_per_s.median == pytest.approx(200 + 2000 / 10)
    assert level.ttft_p99 is not None
    assert level.ttft_p99.median == pytest.approx(50 / 200 * 1.3)


def test_failures_and_disturbed_repeats_are_counted() -> None:
    points = [
        made_point(1, 0, failed={"timeout": 2, "HTTP 500": 1}, other_cores=0.5),
        made_point(1, 1, failed={"timeout": 1}, other_cores=0.1),
    ]
    (level,) = levels_of(points)
    assert (level.failed, level.noisy, level.completed) == (4, 1, 16)


def test_a_latency_is_of_the_repeats_that_have_it_and_none_where_none_has() -> None:
    points = [made_point(1, 0, 100, ttft=None), made_point(1, 1, 100), made_point(1, 2, 100, inter_token=None)]
    (level,) = levels_of(points)
    assert level.ttft_p50 == Spread(0.5, 0.5, 0.5)
    (without,) = levels_of([made_point(1, 0, ttft=None)])
    assert without.ttft_p50 is None
    assert levels_of([]) == []


def test_prefill_levels_are_medians_too() -> None:
    short, long = prefill_levels_of([made_prefill(512, 0, 800), made_prefill(64, 0, 900), made_prefill(512, 1, 1000)])
    assert (short.input_tokens, short.repeats) == (64, 1)
    assert long.tokens_per_s == Spread(pytest.approx(900), pytest.approx(800), pytest.approx(1000))
