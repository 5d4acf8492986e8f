"""Ticks and places."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.console.web.charts.model import Axis
from roundhouse.console.web.charts.scales import linear_ticks, log2_ticks, make_scale, time_ticks

CONCURRENCY = Axis("Concurrency", kind="log2")
SPEED = Axis("Output", "tokens/s")


@pytest.mark.parametrize(
    ("least", "most", "ticks"),
    [
        (0, 97, [0, 20, 40, 60, 80, 100]),
        (0, 0.3, [0, 0.1, 0.2, 0.3]),
        (-3, 2, [-3, -2, -1, 0, 1, 2]),
        (0, 1200, [0, 250, 500, 750, 1000, 1250]),
    ],
)
def test_linear_ticks_are_round_and_reach_around_all_values(least: float, most: float, ticks: list[float]) -> None:
    assert linear_ticks(least, most) == pytest.approx(ticks)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_linear_ticks_are_few_and_cover(least: float, span: float) -> None:
    ticks = linear_ticks(least, least + span)
    assert 2 <= len(ticks) <= 6
    room = 1e-6 * (ticks[-1] - ticks[0])
    assert ticks[0] <= least + room
    assert ticks[-1] >= least + span - room


def test_there_are_no_ticks_without_a_range() -> None:
    with pytest.raises(ValueError, match="no ticks"):
        linear_ticks(3, 3)


def test_concurrencies_are_told_in_powers_of_two() -> None:
    scale = make_scale(CONCURRENCY, [1, 8, 16, 32, 64])
    assert [tick.text for tick in scale.ticks] == ["1", "2", "4", "8", "16", "32", "64"]
    places = [tick.place for tick in scale.ticks]
    assert [later - earlier for earlier, later in pairwise(places)] == pytest.approx([places[1] - places[0]] * 6, abs=0.01)


def test_a_range_without_a_power_of_two_tells_its_ends() -> None:
    assert log2_ticks(5, 7) == [5, 7]


def test_many_doublings_are_told_in_part() -> None:
    assert len(log2_ticks(1, 2**40)) <= 12


@given(st.sampled_from(["linear", "log2", "time"]), st.lists(st.floats(0.5, 1e9), min_size=1, max_size=20))
def test_greater_values_lie_further_and_all_of_them_on_the_plot(kind: str, values: list[float]) -> None:
    scale = make_scale(Axis("x", kind=kind), values)  # type: ignore[arg-type]
    places = [scale.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert -0.01 <= places[0] <= places[-1] <= 100.01
    assert all(-0.01 <= tick.place <= 100.01 for tick in scale.ticks if kind != "time" or len(scale.ticks) > 1)


def test_one_value_and_none_have_an_axis() -> None:
    assert make_scale(CONCURRENCY, [8]).place(8) == 50
    assert make_scale(SPEED, [0]).ticks[-1].value == 1
    assert make_scale(SPEED, []).ticks[0].value == 0
    assert make_scale(Axis("x", from_zero=False), [7, 7]).place(7) == pytest.approx(50, abs=20)
    assert make_scale(CONCURRENCY, []).ticks


def test_zero_is_on_an_axis_of_lengths_only() -> None:
    assert make_scale(SPEED, [90, 100]).least == 0
    assert make_scale(Axis("Output", from_zero=False), [90, 100]).least == 90


def test_ticks_have_as_many_digits_as_tell_them_apart() -> None:
    assert [tick.text for tick in make_scale(SPEED, [0.3]).ticks] == ["0.0", "0.1", "0.2", "0.3"]
    assert make_scale(SPEED, [12_000]).ticks[-1].text == "12,500"


def _at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("least", "most", "told"),
    [
        ("2025-11-30T10:00:00", "2025-11-30T10:00:20", "10:00:15"),
        ("2025-11-30T10:00:00", "2025-11-30T12:00:00", "11:00"),
        ("2025-11-29T20:00:00", "2025-11-30T12:00:00", "11-30 00:00"),
        ("2025-11-01T00:00:00", "2025-11-06T00:00:00", "2025-11-04"),
        ("2001-01-01T00:00:00", "2025-11-06T00:00:00", None),
    ],
)
def test_moments_are_told_as_closely_as_they_need(least: str, most: str, told: str | None) -> None:
    ticks = time_ticks(_at(least), _at(most))
    assert 1 <= len(ticks) <= 7
    assert told is None or told in [text for _, text in ticks]
