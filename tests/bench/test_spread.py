"""How repeats are summed up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from cells import Cell, Run
from spread import IN_PROCESS, TRANSFORMERS, TRITON, Ratio, Spread, ratio, spread, summarize

BF16, FLOAT32 = TRANSFORMERS
TOKENS = 64


def cells(
    speeds: dict[str, list[float]], *, concurrency: int = 1, others: float = 0.0, decoding: float | None = None
) -> list[Cell]:
    """Cells in which each system has these tokens a second, repeat by repeat."""
    return [
        Cell(system, concurrency, repeat, Run(concurrency * TOKENS, concurrency * TOKENS / speed, decoding), others)
        for system, own in speeds.items()
        for repeat, speed in enumerate(own)
    ]


def test_a_spread_is_the_median_between_the_extremes() -> None:
    assert spread([5.0, 1.0, 3.0]) == Spread(3.0, 1.0, 5.0)
    assert spread([1.0, 2.0]) == Spread(1.5, 1.0, 2.0)
    assert spread([4.0]) == Spread(4.0, 4.0, 4.0)


def test_ratios_are_taken_within_each_repeat() -> None:
    assert ratio([30.0, 15.0, 33.0], [10.0, 5.0, 11.0]) == Spread(3.0, 3.0, 3.0), "a slow repeat moves speeds and no ratio"
    assert ratio([10.0, 20.0], [20.0, 10.0]) == Spread(1.25, 0.5, 2.0), "not the ratio of medians"


def test_the_faster_transformers_is_the_one_that_counts() -> None:
    quick = {IN_PROCESS: [40.0, 44.0, 48.0], TRITON: [20.0, 22.0, 36.0], BF16: [5.0, 30.0, 5.0], FLOAT32: [10.0, 11.0, 12.0]}
    told = summarize(cells(quick), 1)
    assert told.best_transformers == FLOAT32, "by medians: one quick repeat does not count"
    assert told.ratios == (
        Ratio(IN_PROCESS, FLOAT32, Spread(4.0, 4.0, 4.0)),
        Ratio(TRITON, FLOAT32, Spread(2.0, 2.0, 3.0)),
        Ratio(TRITON, IN_PROCESS, Spread(0.5, 0.5, 0.75)),
    )
    assert told.tokens_per_s[BF16] == Spread(5.0, 5.0, 30.0)
    assert summarize(cells(quick | {BF16: [13.0] * 3}), 1).best_transformers == BF16


def test_repeats_are_matched_whatever_the_order_of_the_cells() -> None:
    speeds = {IN_PROCESS: [10.0, 20.0], TRITON: [5.0, 10.0], BF16: [1.0, 1.0], FLOAT32: [2.0, 2.0]}
    mixed = sorted(cells(speeds), key=lambda cell: cell.repeat if cell.system == TRITON else -cell.repeat)
    assert summarize(mixed, 1) == summarize(cells(speeds), 1)


def test_each_concurrency_is_summed_up_alone() -> None:
    speeds = {IN_PROCESS: [10.0], TRITON: [10.0], BF16: [10.0], FLOAT32: [10.0]}
    double = {system: [20.0] for system in speeds}
    both = cells(speeds) + cells(double, concurrency=8)
    assert summarize(both, 8).tokens_per_s[TRITON] == Spread(20.0, 20.0, 20.0)
    assert summarize(both, 1) == summarize(cells(speeds), 1)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_transport_is_what_a_step_takes_longer_through_triton(concurrency: int) -> None:
    speeds = {IN_PROCESS: [100.0, 100.0], TRITON: [50.0, 200.0], BF16: [1.0, 1.0], FLOAT32: [1.0, 1.0]}
    told = summarize(cells(speeds, concurrency=concurrency), concurrency).transport_ms
    step = concurrency * 10.0  # ms in process
    assert (told.least, told.most) == pytest.approx((-step / 2, step))


def test_disturbed_repeats_are_counted_by_system() -> None:
    speeds = {IN_PROCESS: [10.0] * 3, TRITON: [10.0] * 3, BF16: [10.0] * 3, FLOAT32: [10.0] * 3}
    quiet, disturbed = cells(speeds), cells({TRITON: [10.0] * 3}, others=0.9)
    mixed = [each for each in quiet if each.system != TRITON or each.repeat != 1] + disturbed[1:2]
    assert summarize(mixed, 1).noisy == {IN_PROCESS: 0, TRITON: 1, BF16: 0, FLOAT32: 0}


def test_decoding_alone_is_shown_where_it_is_known() -> None:
    speeds = {IN_PROCESS: [10.0], TRITON: [10.0], BF16: [10.0], FLOAT32: [10.0]}
    assert summarize(cells(speeds), 1).decode_tokens_per_s is None
    assert summarize(cells(speeds, decoding=12.5), 1).decode_tokens_per_s == Spread(12.5, 12.5, 12.5)
