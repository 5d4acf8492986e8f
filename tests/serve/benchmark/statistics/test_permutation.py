"""The test for a change to the worse: counted out by hand, and how often it cries wolf."""

from __future__ import annotations

import numpy as np
import pytest

from roundhouse.serve.benchmark.statistics import holm, is_worse, least_possible_p


def test_three_against_three_that_do_not_overlap_are_one_exchange_of_twenty() -> None:
    tested = is_worse([([100, 101, 102], [90, 91, 92])], more_is_better=True)
    assert (tested.p, tested.least_p) == (pytest.approx(1 / 20), pytest.approx(1 / 20))
    assert tested.ratio == pytest.approx(91 / 101, rel=1e-3)
    better = is_worse([([100, 101, 102], [90, 91, 92])], more_is_better=False)
    assert better.p == 1
    assert better.ratio == pytest.approx(tested.ratio)


def test_strata_add_up_and_are_never_mixed() -> None:
    """A level that is eight times as fast must not hide that both of them are slower."""
    tested = is_worse([([100, 101, 102], [90, 91, 92]), ([800, 801, 802], [720, 721, 722])], more_is_better=True)
    assert tested.p == pytest.approx(1 / 400)
    mixed = is_worse([([100, 101, 102, 800, 801, 802], [90, 91, 92, 720, 721, 722])], more_is_better=True)
    assert mixed.p > 0.2


def test_pairs_are_strata_of_one_against_one() -> None:
    tested = is_worse([([base], [base * 1.1]) for base in (1.0, 5.0, 0.2, 9.0, 3.0)], more_is_better=False)
    assert (tested.p, tested.least_p) == (1 / 32, 1 / 32)
    assert tested.ratio == pytest.approx(1.1)


def test_constant_repeats_are_no_worse() -> None:
    tested = is_worse([([5.0] * 4, [5.0] * 4)], more_is_better=True)
    assert (tested.p, tested.ratio) == (1.0, 1.0)


def test_what_is_drawn_agrees_with_what_is_counted_out(monkeypatch: pytest.MonkeyPatch) -> None:
    strata = [([100, 104, 99, 97], [98, 101, 95, 96]), ([400, 410, 390, 405], [395, 401, 388, 397])]
    counted = is_worse(strata, more_is_better=True)
    monkeypatch.setattr("roundhouse.serve.benchmark.statistics.permutation._MOST_COUNTED", 10)
    drawn = is_worse(strata, more_is_better=True, seed=5)
    assert drawn.p == pytest.approx(counted.p, abs=0.015)
    assert drawn.ratio == counted.ratio
    assert drawn == is_worse(strata, more_is_better=True, seed=5)


def test_equal_runs_fail_as_often_as_alpha_says_and_slower_ones_are_seen() -> None:
    draws = np.random.default_rng(3)

    def share_below(alpha: float, slower: float) -> float:
        found = []
        for _ in range(300):
            logs = draws.normal(0, 0.03, (2, 3, 3)) + np.log([100, 300, 500])[:, None]
            strata = [(list(np.exp(base)), list(np.exp(other) * slower)) for base, other in zip(*logs, strict=True)]
            found.append(is_worse(strata, more_is_better=True).p <= alpha)
        return float(np.mean(found))

    assert share_below(0.05, 1.0) <= 0.08
    assert share_below(0.05, 0.92) >= 0.95


def test_the_least_p_is_known_before_anything_is_measured() -> None:
    assert least_possible_p([(3, 3)]) == 1 / 20
    assert least_possible_p([(3, 3), (2, 4)]) == 1 / (20 * 15)
    assert least_possible_p([(1, 1)] * 5) == 1 / 32
    assert least_possible_p([(20, 20)]) == 1 / 10_000, "so many are drawn"


def test_holm_raises_what_is_tested_several_times_and_keeps_its_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@pytest.mark.parametrize("strata", [[], [([], [1.0])], [([1.0], [0.0])]])
def test_nothing_to_test_is_an_error(strata: list[tuple[list[float], list[float]]]) -> None:
    with pytest.raises(ValueError, match=r"stratum without|not above zero"):
        is_worse(strata, more_is_better=True)
