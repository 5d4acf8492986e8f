"""A run in a few numbers: load and prefill both count."""

from __future__ import annotations

import pytest
from benchmark_runs import made_point, made_prefill

from roundhouse.serve.benchmark.statistics import summary_of


def test_the_most_is_of_medians_and_prefill_counts_among_what_failed_and_was_disturbed() -> None:
    points = [made_point(1, 0, 90), made_point(8, 0, 400, failed={"timeout": 2}, other_cores=0.5), made_point(8, 1, 300)]
    lost = {"failed": {"HTTP 500": 3}, "other_cores": 0.7}
    prefill = [made_prefill(64, 0, 800), made_prefill(512, 0, 1000).model_copy(update=lost)]
    summary = summary_of(points, prefill)
    assert (summary.tokens_per_s_most, summary.concurrency_most, summary.tokens_per_s_alone) == (350, 8, 90)
    assert summary.prefill_tokens_per_s == pytest.approx(1000)
    assert (summary.failed, summary.noisy) == (5, 2)


def test_nothing_measured_has_no_speed() -> None:
    summary = summary_of([], [])
    assert (summary.tokens_per_s_most, summary.concurrency_most, summary.tokens_per_s_alone) == (None, None, None)
    assert (summary.prefill_tokens_per_s, summary.failed, summary.noisy) == (None, 0, 0)
