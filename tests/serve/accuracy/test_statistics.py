"""Statistics against known answers, and what they must always hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.accuracy.statistics import (
    perplexity,
    perplexity_difference,
    ratio,
    share,
    share_difference,
)

BITS = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=60)


def test_the_error_of_a_share_is_the_binomial_one() -> None:
    found = share([1.0] * 30 + [0.0] * 70)
    assert found.value == pytest.approx(0.3)
    assert found.stderr == pytest.approx(math.sqrt(0.3 * 0.7 / 99))


def test_one_item_has_no_error() -> None:
    assert share([1.0]).stderr is None
    assert ratio([3.0], [4]).stderr is None
    assert perplexity_difference([-5.0], [-4.0], [3]) is None


def test_a_ratio_is_over_tokens_and_its_error_over_items() -> None:
    found = ratio([3, 1], [4, 4])
    assert found.value == pytest.approx(0.5)
    # residuals 1 and -1; √(2/1 · 2) / 8
    assert found.stderr == pytest.approx(0.25)


def test_perplexity_of_a_fair_die_is_six() -> None:
    found = perplexity([-2 * math.log(6), -5 * math.log(6)], [2, 5])
    assert found.value == pytest.approx(6)
    assert found.stderr == pytest.approx(0, abs=1e-9)


def test_the_interval_of_a_difference_of_shares_is_bonett_and_price_s() -> None:
    # 100 pairs, 5 gained and 12 lost: p12 = 6/102, p21 = 13/102
    ours = [1.0] * 5 + [0.0] * 12 + [1.0] * 83
    base = [0.0] * 5 + [1.0] * 12 + [1.0] * 83
    found = share_difference(ours, base)
    half = 1.959964 * math.sqrt((6 / 102 + 13 / 102 - (7 / 102) ** 2) / 102)
    assert found.value == pytest.approx(-0.07)
    assert found.base == pytest.approx(0.95)
    assert found.low == pytest.approx(-7 / 102 - half, abs=1e-6)
    assert found.high == pytest.approx(-7 / 102 + half, abs=1e-6)


def test_equal_answers_leave_room_for_doubt_that_shrinks_with_items() -> None:
    few, many = share_difference([1.0] * 10, [1.0] * 10), share_difference([1.0] * 1000, [1.0] * 1000)
    assert few.value == many.value == 0
    assert few.high > 0.2
    assert 0 < many.high < 0.01


def test_scores_between_right_and_wrong_take_student_s_t() -> None:
    found = share_difference([0.5, 0.7, 0.9], [0.4, 0.7, 0.7])
    # differences .1, 0, .2: mean .1, s = .1, t(2) = 4.302653
    assert found.low == pytest.approx(0.1 - 4.302653 * 0.1 / math.sqrt(3), abs=1e-6)
    assert found.high == pytest.approx(0.1 + 4.302653 * 0.1 / math.sqrt(3), abs=1e-6)


def test_a_model_that_is_worse_by_the_same_factor_everywhere_is_so_without_doubt() -> None:
    tokens = [3, 8, 5]
    base = [-2.0 * count for count in tokens]
    ours = [-2.1 * count for count in tokens]
    found = perplexity_difference(ours, base, tokens)
    assert found is not None
    assert found.base == pytest.approx(math.exp(2))
    assert found.value == pytest.approx(math.exp(2.1) - math.exp(2))
    assert found.low == pytest.approx(found.high)


@given(BITS, st.randoms(use_true_random=False))
def test_an_interval_holds_its_value_and_turns_round_with_its_sides(ours: list[float], chance) -> None:
    base = [chance.choice([0.0, 1.0]) for _ in ours]
    there, back = share_difference(ours, base), share_difference(base, ours)
    assert -1 <= there.low <= there.value <= there.high <= 1
    assert there.value == pytest.approx(-back.value)
    assert there.low == pytest.approx(-back.high)


def test_intervals_of_chance_alone_hold_zero_about_as_often_as_they_say() -> None:
    import numpy as np

    chance = np.random.default_rng(1)
    missed = 0
    for _ in range(400):
        ours, base = (chance.random((2, 80)) < 0.6).astype(float)
        found = share_difference(ours.tolist(), base.tolist())
        missed += not found.low <= 0 <= found.high
    assert 6 <= missed <= 34  # 20 are expected
