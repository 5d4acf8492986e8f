"""Bootstrap intervals of many runs: what is counted out is what all resamples come to."""

from __future__ import annotations

from collections import Counter
from itertools import product
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.benchmark.statistics.resampling import ends_of_medians, ends_of_ratios, median_chances


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_chances_are_those_of_all_resamples(count: int) -> None:
    seen: Counter[tuple[int, int]] = Counter()
    for drawn in product(range(count), repeat=count):
        ordered = sorted(drawn)
        seen[ordered[(count - 1) // 2], ordered[count // 2]] += 1
    chances = median_chances(count)
    assert set(seen) <= set(chances)
    assert {places: chances[places] * count**count for places in chances} == pytest.approx(
        {places: seen[places] for places in chances}, abs=1e-9
    )


@pytest.mark.parametrize("count", [6, 7, 20, 101])
def test_chances_are_whole(count: int) -> None:
    chances = median_chances(count)
    assert sum(chances.values()) == pytest.approx(1)
    assert min(chances.values()) > -1e-12
    turned = {(count - 1 - high, count - 1 - low): chance for (low, high), chance in chances.items()}
    assert turned == pytest.approx(chances, abs=1e-12)


@given(st.lists(st.floats(1, 1000), min_size=3, max_size=4), st.lists(st.floats(1, 1000), min_size=3, max_size=4))
def test_ends_are_quantiles_of_all_resamples(base: list[float], other: list[float]) -> None:
    medians = [[median(drawn) for drawn in product(values, repeat=len(values))] for values in (base, other)]
    ratios = np.sort(np.divide.outer(medians[1], medians[0]).ravel())
    ((low, high),) = ends_of_ratios(base, [other], 0.9)
    below, above = np.mean(ratios < low * (1 - 1e-9)), np.mean(ratios <= high * (1 + 1e-9))
    assert below <= 0.05 <= np.mean(ratios <= low * (1 + 1e-9)) + 1e-9
    assert np.mean(ratios < high * (1 - 1e-9)) <= 0.95 <= above + 1e-9
    ((alone, _),) = ends_of_medians([other], 0.9)
    assert min(other) <= alone <= median(other)


def test_of_many_repeats_resamples_are_drawn_and_agree() -> None:
    draws = np.random.default_rng(4)
    base, other = list(draws.normal(100, 5, 40)), list(draws.normal(120, 5, 40))
    ((low, high),) = ends_of_ratios(base, [other], 0.95, seed=1)
    assert ((low, high),) == tuple(ends_of_ratios(base, [other], 0.95, seed=1))
    ratio = median(other) / median(base)
    assert ratio * 0.94 < low < ratio < high < ratio * 1.06
    many = list(draws.normal(100, 5, 60))
    ((low, high),) = ends_of_medians([many], 0.95)
    assert low < median(many) < high
