"""Ratios with intervals: known answers, simulated coverage, and what cannot have an interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.benchmark.statistics import Ratio, paired_ratio_intervals, ratio_interval, ratio_intervals

SPEEDS = st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=3, max_size=8)


def test_a_ratio_is_of_medians_and_its_interval_of_three_repeats_is_between_the_extremes() -> None:
    ratio = ratio_interval([100, 110, 90], [200, 230, 190], paired=False)
    assert ratio.value == 2.0
    assert (ratio.low, ratio.high) == (190 / 110, 230 / 90)  # resamples of one value alone are 1 in 15 of each extreme
    assert ratio.confidence == pytest.approx(0.9)
    assert ratio.differs


def test_a_pair_s_ratio_is_within_its_repeat() -> None:
    """What disturbs a repeat disturbs both sides of it and leaves their ratio alone."""
    base, other = [100.0, 50.0, 10.0], [200.0, 100.0, 20.0]
    paired, unpaired = ratio_interval(base, other, paired=True), ratio_interval(base, other, paired=False)
    assert (paired.value, paired.low, paired.high, paired.method) == (2, 2, 2, "paired bootstrap")
    assert paired.confidence == pytest.approx(0.75)
    assert unpaired.low is not None
    assert unpaired.low < 1
    assert not unpaired.differs


def test_constant_repeats_have_an_interval_of_no_width() -> None:
    ratio = ratio_interval([10.0] * 5, [15.0] * 5, paired=False)
    assert (ratio.value, ratio.low, ratio.high) == (1.5, 1.5, 1.5)
    assert ratio_interval([10.0] * 5, [10.0] * 5, paired=True).differs is False


def test_ties_are_no_trouble() -> None:
    ratio = ratio_interval([10, 10, 10, 11], [10, 10, 11, 11], paired=False)
    assert ratio.value == pytest.approx(1.05)
    assert ratio.low is not None
    assert ratio.low <= 1.05
    assert not ratio.differs


@pytest.mark.parametrize(("repeats", "words"), [(1, "there is 1"), (2, "there are 2")])
def test_too_few_repeats_have_a_ratio_and_no_interval_and_it_is_said_why(repeats: int, words: str) -> None:
    ratio = ratio_interval([10.0] * repeats, [20.0] * 5, paired=False)
    assert (ratio.value, ratio.low, ratio.high, ratio.method) == (2.0, None, None, "none")
    assert ratio.why is not None
    assert words in ratio.why
    assert not ratio.differs


@pytest.mark.parametrize("other", [[], [0.0, 1.0, 2.0], [1.0, math.nan, 2.0], [math.inf, 1.0, 2.0]])
def test_what_was_not_measured_has_no_ratio(other: list[float]) -> None:
    ratio = ratio_interval([1.0, 2.0, 3.0], other, paired=False)
    assert (ratio.value, ratio.low, ratio.confidence) == (None, None, None)
    assert ratio.why


def test_pairs_must_be_pairs() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        ratio_interval([1.0, 2.0, 3.0], [1.0, 2.0], paired=True)


@given(base=SPEEDS, other=SPEEDS, seed=st.integers(0, 2**31))
def test_turning_sides_around_turns_the_interval_around(base: list[float], other: list[float], seed: int) -> None:
    (there,), (back,) = ratio_intervals(base, [other], seed=seed), ratio_intervals(other, [base], seed=seed + 1)
    assert None not in (there.value, there.low, there.high, back.value, back.low, back.high)
    assert there.value == pytest.approx(1 / (back.value or 0))
    assert there.low <= there.value <= there.high  # type: ignore[operator] # not None, as seen above
    extremes = min(other) / max(base), max(other) / min(base)
    assert extremes[0] * (1 - 1e-9) <= (there.low or 0)
    assert (there.high or 0) <= extremes[1] * (1 + 1e-9)


@pytest.mark.parametrize(("repeats", "at_least"), [(3, 0.87), (5, 0.93), (10, 0.93)])
def test_intervals_hold_the_true_ratio_as_often_as_they_say(repeats: int, at_least: float) -> None:
    draws, runs = np.random.default_rng(7), 600
    base = np.exp(draws.normal(0, 0.05, (runs, repeats))) * 100
    others = np.exp(draws.normal(0, 0.05, (runs, repeats))) * 120
    found = [ratio_intervals(list(base[run]), [list(others[run])], seed=run)[0] for run in range(runs)]
    held = sum((ratio.low or 0) <= 1.2 <= (ratio.high or 0) for ratio in found) / runs
    assert held >= at_least


@pytest.mark.parametrize("repeats", [4, 5, 6, 7, 8, 10, 13])
def test_intervals_of_pairs_hold_the_true_ratio_as_often_as_they_say(repeats: int) -> None:
    draws, runs = np.random.default_rng(8), 800
    base = np.exp(draws.normal(0, 0.3, (runs, repeats)))
    others = base * 1.2 * np.exp(draws.normal(0, 0.05, (runs, repeats)))
    found = paired_ratio_intervals([(list(before), list(now)) for before, now in zip(base, others, strict=True)])
    held = sum((ratio.low or 0) <= 1.2 <= (ratio.high or 0) for ratio in found) / runs
    promised = sum(ratio.confidence or 0 for ratio in found) / runs
    assert held >= promised - 0.03
    assert promised >= 0.87


def test_many_at_once_agree_with_scipy_one_by_one() -> None:
    draws = np.random.default_rng(11)
    base = list(draws.lognormal(5, 0.1, 9))
    others = [list(draws.lognormal(5.2, 0.1, repeats)) for repeats in (9, 9, 12, 20, 7)]
    for quick, other in zip(ratio_intervals(base, others), others, strict=True):
        scipy_s = ratio_interval(base, other, paired=False)
        assert quick.value == scipy_s.value
        assert quick.low == pytest.approx(scipy_s.low, rel=0.02)
        assert quick.high == pytest.approx(scipy_s.high, rel=0.02)
        assert (quick.confidence, quick.method, quick.repeats) == (scipy_s.confidence, scipy_s.method, scipy_s.repeats)


def test_many_at_once_keep_their_order_and_name_those_without_interval() -> None:
    found = ratio_intervals([10.0, 11.0, 12.0], [[22.0] * 4, [33.0], [0.0] * 3, [11.0] * 3, []])
    assert [ratio.value for ratio in found] == [2.0, 3.0, None, 1.0, None]
    assert [ratio.low is not None for ratio in found] == [True, False, False, True, False]
    assert found[1].why
    assert ratio_intervals([], [[1.0]]) == [Ratio(None, None, None, None, "none", 0, "one side has no value")]


def test_many_pairs_at_once_agree_with_scipy_one_by_one() -> None:
    draws = np.random.default_rng(12)
    pairs = []
    for repeats in (9, 5, 9, 20, 4):
        base = draws.lognormal(5, 0.5, repeats)
        pairs.append((list(base), list(base * draws.lognormal(0.2, 0.1, repeats))))
    for quick, (before, now) in zip(paired_ratio_intervals(pairs), pairs, strict=True):
        scipy_s = ratio_interval(before, now, paired=True)
        assert quick.value == scipy_s.value
        assert quick.low == pytest.approx(scipy_s.low, rel=0.02)
        assert quick.high == pytest.approx(scipy_s.high, rel=0.02)
        assert (quick.confidence, quick.method, quick.repeats) == (scipy_s.confidence, scipy_s.method, scipy_s.repeats)


def test_pairs_that_have_no_interval_keep_their_place() -> None:
    found = paired_ratio_intervals([([1.0], [2.0]), ([1.0, 1.0, 1.0], [3.0, 3.0, 3.0]), ([], [])])
    assert [ratio.value for ratio in found] == [2.0, 3.0, None]
    assert [ratio.low is not None for ratio in found] == [False, True, False]
    with pytest.raises(ValueError, match="cannot be paired"):
        paired_ratio_intervals([([1.0, 2.0, 3.0], [1.0])])


def test_equal_seeds_give_equal_intervals() -> None:
    base, other = [1.0, 1.2, 1.1, 1.3, 0.9], [2.0, 2.1, 1.9, 2.2, 2.4]
    assert ratio_interval(base, other, paired=False, seed=3) == ratio_interval(base, other, paired=False, seed=3)
    assert ratio_intervals(base, [other], seed=3) == ratio_intervals(base, [other], seed=3)
