"""Runs side by side, as they are read from both databases."""

from __future__ import annotations

import pytest
from runs_made_up import add_run

from roundhouse.console.benchmarks.compare import compare_runs
from roundhouse.console.benchmarks.compare_asked import CompareAsked
from roundhouse.console.benchmarks.compare_quantities import COMPARED_BY, ComparedName
from roundhouse.console.benchmarks.regressions import check_regressions
from roundhouse.console.database.database import Database
from roundhouse.serve.benchmark.statistics import QUANTITIES

BASE, OTHER = "a" * 12, "b" * 12


@pytest.mark.parametrize("by", COMPARED_BY)
def test_every_quantity_is_read_as_points_have_it(database: Database, by: ComparedName) -> None:
    with database.writing() as session:
        first = add_run(session, BASE, speeds={1: (10, 11, 12), 8: (100.0, 101.0, 102.0)})
        second = add_run(session, OTHER, speeds={8: (150.0, 151.5, 153.0)})
    with database.reading() as session:
        compared = compare_runs(session, CompareAsked((BASE, OTHER), by=by))
    values = [QUANTITIES[by].of(next(point for point in run.points if (point.concurrency, point.repeat) == (8, 1)))
              for run in (first, second)]  # fmt: skip
    before, now = values
    assert before is not None
    assert now is not None
    ratio = compared.runs[1].ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(now / before)
    assert (compared.at, compared.runs[1].verdict) == (8, "faster")


def test_failed_requests_are_counted_from_what_was_written_down(database: Database) -> None:
    prefill = {512: (0.1, 0.1, 0.1), 64: (0.1,)}
    with database.writing() as session:
        add_run(session, BASE, speeds={8: (100.0,) * 3, 1: (10.0,)}, prefill=prefill, failed=1)
        add_run(session, OTHER, speeds={8: (100.0,) * 3, 2: (10.0,)}, prefill={512: prefill[512]}, failed=9, failed_prompts=2)
    with database.reading() as session:
        found = check_regressions(session, [(BASE, OTHER)])[OTHER]
    assert found.words == "33 of 69 requests failed, in the baseline 3 of 39.", "of what both have measured"
    assert found.worse == {"failures"}
