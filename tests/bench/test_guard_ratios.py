"""How rounds with the page check off and on are summed up, and what may be said of them."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from cells import Cell, Run
from guard_episodes import METRICS, Episode
from guard_ratios import Interval, Ratios, conclusion, interval, ratios


def episode(level: str, number: int, *, seconds: float = 1.0, concurrency: int = 1, others: float = 0.0) -> Episode:
    """Ten tokens for each request; every step takes a tenth of the time, but the last one twice as long."""
    run = Run(10 * concurrency, seconds)
    return Episode(Cell(level, concurrency, number, run, others), (*[seconds * 100] * 9, seconds * 200))


def rounds(off: list[float], on: list[float], **keys: float) -> list[Episode]:
    """Episodes that take these seconds, round by round."""
    return [
        episode(level, number, seconds=seconds, **keys)  # type: ignore[arg-type]
        for level, own in (("off", off), ("tags", on))
        for number, seconds in enumerate(own)
    ]


def test_what_is_always_the_same_is_known_exactly() -> None:
    assert interval([1.25] * 6) == Interval(1.25, 1.25, 1.25)


def test_an_interval_lies_around_the_median_and_within_the_values() -> None:
    draw = random.Random(4)
    values = [draw.gauss(1.0, 0.02) for _ in range(9)]
    told = interval(values)
    assert min(values) <= told.low < told.median < told.high <= max(values)
    assert told.median == sorted(values)[4]
    assert interval(values) == told, "the same values give the same interval"
    assert interval(values * 16).half_width < told.half_width / 2, "more rounds make it narrower"


def test_an_interval_holds_what_it_estimates_about_as_often_as_it_says() -> None:
    draw = random.Random(5)
    told = [interval([draw.gauss(1.0, 0.02) for _ in range(9)]) for _ in range(60)]
    assert 50 <= sum(each.low <= 1.0 <= each.high for each in told) <= 60


@pytest.mark.parametrize(("half_width", "resolved"), [(0.0, True), (0.004, True), (0.006, False)])
def test_half_a_percent_is_what_must_be_told_apart(half_width: float, resolved: bool) -> None:
    assert Interval(1.0, 1.0 - half_width, 1.0 + half_width).resolved is resolved


def test_ratios_are_taken_within_each_round() -> None:
    slow_rounds = [1.0, 3.0, 1.0, 9.0, 1.0, 2.0]
    told = ratios(rounds(slow_rounds, [seconds * 2 for seconds in slow_rounds]), "tags", 1)
    assert told.by_metric["tokens/s"] == Interval(0.5, 0.5, 0.5), "a slow round moves speeds and no ratio"
    assert all(told.by_metric[metric].median == pytest.approx(2.0) for metric in METRICS[1:])
    assert told.rounds == 6


def test_rounds_are_matched_whatever_their_order() -> None:
    seconds = [float(number) for number in range(1, 7)]
    quiet = rounds(seconds, [2 * each for each in seconds])
    assert ratios(quiet[::-1], "tags", 1) == ratios(quiet, "tags", 1)
    assert ratios(quiet[::-1], "tags", 1).by_metric["tokens/s"].half_width == 0


def test_each_concurrency_and_level_is_summed_up_alone() -> None:
    one, eight = rounds([1.0] * 6, [2.0] * 6), rounds([1.0] * 6, [4.0] * 6, concurrency=8)
    content = [episode("tags+content", number, seconds=5.0) for number in range(6)]
    mixed = one + eight + content
    assert [
        ratios(mixed, level, concurrency).by_metric["tokens/s"].median
        for level, concurrency in (("tags", 1), ("tags", 8), ("tags+content", 1))
    ] == [0.5, 0.25, 0.2]


def test_a_round_is_disturbed_when_one_of_its_two_episodes_is() -> None:
    episodes = rounds([1.0] * 6, [1.0] * 6)
    for number, level in ((0, "off"), (2, "tags"), (2, "off"), (4, "tags+content")):
        episodes = [each for each in episodes if (each.cell.system, each.cell.repeat) != (level, number)]
        episodes.append(episode(level, number, others=0.5))
    assert ratios(episodes, "tags", 1).disturbed == 2


def test_an_episode_knows_its_latencies() -> None:
    metrics = episode("tags", 0, seconds=0.5).metrics
    assert list(metrics) == list(METRICS)
    assert metrics == pytest.approx({"tokens/s": 20.0, "p50 ms": 50.0, "p95 ms": 77.5, "p99 ms": 95.5})


def found(**intervals: Interval) -> Ratios:
    known = Interval(1.0, 0.999, 1.001)
    by_metric = dict.fromkeys(METRICS, known) | {name.replace("_", " "): each for name, each in intervals.items()}
    return Ratios("tags", 8, 9, 0, by_metric)


def test_what_is_resolved_is_said_in_percent() -> None:
    told = conclusion(found(p50_ms=Interval(1.0031, 1.001, 1.0052)))
    assert told.startswith(
        "tags, 8 at once: tokens/s +0.00 % (95 %: −0.10 % to +0.10 %); p50 ms +0.31 % (95 %: +0.10 % to +0.52 %)"
    )
    assert "cannot" not in told


def test_what_is_not_resolved_is_said_plainly() -> None:
    wide = Interval(1.0, 0.98, 1.004)
    told = conclusion(found(p95_ms=wide, p99_ms=Interval(1.0, 0.9, 1.1)))
    assert told.endswith("; cannot resolve 0.5 % on this machine: p95 ms ±1.2 %, p99 ms ±10.0 %")
    assert "p95 ms +" not in told
    all_wide = Ratios("tags", 1, 9, 3, dict.fromkeys(METRICS, wide))
    assert conclusion(all_wide).startswith("tags, 1 at once: cannot resolve 0.5 % on this machine: tokens/s ±1.2 %, p50")
