"""Whether more requests fail than did."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from roundhouse.serve.benchmark.failing import judge_failures

COUNT = st.integers(0, 300)


@given(COUNT, COUNT, COUNT, COUNT)
def test_p_is_that_of_fishers_exact_test(failed: int, well: int, before: int, well_before: int) -> None:
    found = judge_failures(failed, failed + well, before, before + well_before, alpha=0.05)
    if failed + well and before + well_before:
        expected = float(fisher_exact([[failed, well], [before, well_before]], alternative="greater").pvalue)
        assert found.p == pytest.approx(expected, rel=1e-6, abs=1e-12)
    else:
        assert found.p == 1


@pytest.mark.parametrize(
    ("failed", "before", "risen"), [(0, 0, False), (1, 0, True), (4, 3, False), (30, 3, True), (0, 30, False), (3, 30, False)]
)
def test_any_failure_is_a_rise_where_there_was_none_and_else_what_noise_does_not_explain(
    failed: int, before: int, risen: bool
) -> None:
    assert judge_failures(failed, 400, before, 400, alpha=0.05).risen is risen


def test_great_numbers_are_counted_quickly_and_alike() -> None:
    found = judge_failures(60_000, 1_000_000, 59_000, 1_000_000, alpha=0.05)
    assert found.p == pytest.approx(0.0014125, rel=0.01)
    assert found.risen
