"""What the tables of the page check's cost show."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from cells import Cell, Run
from guard_bare import Bare
from guard_episodes import METRICS, Episode
from guard_ratios import Interval, Ratios
from guard_report import bare_table, ratio_table, share_table
from guard_share import Share
from step_profile import StepProfile


def shown(table: Table) -> list[list[str]]:
    """The lines of a table, as words."""
    out = io.StringIO()
    Console(file=out, width=100).print(table)
    return [line.split() for line in out.getvalue().splitlines() if line.strip()]


def share(level: str, *, others: float = 0.0) -> Share:
    ms = {"guard": 0.1234, "sealing": 0.05, "tracker": 0.002, "forward": 49.8246}
    return Share(level, StepProfile(8, 48, ms, others))  # type: ignore[arg-type]


def test_a_step_s_parts_stand_beside_their_share_of_it() -> None:
    lines = shown(share_table([share("tags"), share("tags+content")]))
    assert ["8", "tags", "50.0", "0.123", "0.050", "0.002", "0.35%"] in lines
    assert ["8", "tags+content", "50.0", "0.123", "0.050", "0.002", "0.35%"] in lines
    assert "under 0.5 %" in " ".join(lines[0])
    assert not any("*" in word for line in lines for word in line)


def test_steps_that_were_disturbed_are_marked() -> None:
    lines = shown(share_table([share("tags", others=0.3), share("tags+content")]))
    assert [line[0] for line in lines if line[-1] == "0.35%"] == ["8*", "8"]
    assert " ".join(lines[-1]) == "* others kept more than 0.2 cores busy"


def episodes(*, others: float = 0.0) -> list[Episode]:
    speeds = {"off": (2.0, 1.0, 4.0), "tags": (1.0, 1.0, 1.0)}
    return [
        Episode(Cell(level, 1, number, Run(10, 10 / speed), others if level == "tags" else 0.0), (1000 / speed,) * 9)
        for level, own in speeds.items()
        for number, speed in enumerate(own)
    ]


def found(spread: float, *, disturbed: int = 0) -> Ratios:
    known = dict.fromkeys(METRICS, Interval(0.9977, 0.9961, 0.9989))
    return Ratios("tags", 1, 3, disturbed, known | {"p99 ms": Interval(1.01, 1.01 - spread, 1.01 + spread)})


def test_off_is_shown_as_it_is_and_levels_as_ratios_above_their_intervals() -> None:
    lines = shown(ratio_table(episodes(), [found(0.001)]))
    assert ["1", "off", "2.00", "500.00", "500.00", "500.00"] in lines
    assert ["1", "tags", "÷", "off", "0.9977", "0.9977", "0.9977", "1.0100"] in lines
    assert ["0.9961–0.9989"] * 3 + ["1.0090–1.0110"] in lines
    assert not any(mark in word for line in lines for word in line for mark in "*?")


def test_what_is_not_resolved_and_what_was_disturbed_is_marked() -> None:
    lines = shown(ratio_table(episodes(others=0.5), [found(0.03, disturbed=2)]))
    assert ["1", "off", "2.00", "500.00", "500.00", "500.00"] in lines
    assert ["1*", "tags", "÷", "off", "0.9977", "0.9977", "0.9977", "1.0100?"] in lines
    assert [" ".join(line) for line in lines[-2:]] == [
        "* others kept more than 0.2 cores busy in at least one round",
        "? the interval is wider than ±0.5 %",
    ]


def test_every_concurrency_has_its_own_rows() -> None:
    eight = [Episode(Cell("off", 8, 0, Run(80, 1.0), 0.0), (4.0,))]
    both = [found(0.001), Ratios("tags", 8, 1, 0, found(0.001).by_metric)]
    lines = shown(ratio_table(episodes() + eight, both))
    assert ["8", "off", "80.00", "4.00", "4.00", "4.00"] in lines
    assert [line[:2] for line in lines if line[0] in ("1", "8")] == [["1", "off"], ["1", "tags"], ["8", "off"], ["8", "tags"]]


def test_the_bare_check_is_shown_in_microseconds() -> None:
    lines = shown(bare_table([Bare("native", 64, 4096, 2, 211.26, 143.0)]))
    assert lines[-1] == ["64", "4,096", "native", "2", "211.3", "143.0"]
