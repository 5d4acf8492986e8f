"""Kill -9 of what measures, and of the worker that watches it: nothing runs for ever, and what was measured stays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from roundhouse.console.benchmarks.queries import list_benchmarks
from roundhouse.console.benchmarks.records import BenchmarkFilter, BenchmarkRow
from roundhouse.console.database.base import utc_now
from roundhouse.console.models import BenchmarkRun, Worker
from roundhouse.console.paging import PageOf

from .conftest import Bench, eventually

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def the_run(bench: Bench) -> tuple[BenchmarkRow, str]:
    """As it is shown, and its state as it is known."""
    with bench.database.reading() as session:
        (row,) = list_benchmarks(session, BenchmarkFilter(), PageOf()).items
        return row, session.get_one(BenchmarkRun, row.id).state


def test_a_job_whose_process_is_killed_leaves_an_interrupted_run(bench: Bench) -> None:
    bench.start()
    job = bench.do("measure")
    bench.at_stage(job, "waiting")
    row, _ = the_run(bench)
    assert (row.state, row.job_id, row.points) == ("running", job, 6)
    for process in bench.children():
        process.kill()
    assert bench.ended(job).state == "failed"
    eventually(lambda: the_run(bench)[1] == "interrupted")
    assert the_run(bench)[0].points == 6


def test_a_worker_that_is_killed_takes_its_benchmark_along_and_the_next_one_says_so(bench: Bench) -> None:
    worker = bench.start_process(lease_s=2.0)
    job = bench.do("measure")
    bench.at_stage(job, "waiting")
    worker.kill()
    worker.wait()
    eventually(lambda: not bench.children())
    assert the_run(bench)[1] == "running"  # nobody knows yet
    with bench.database.writing() as session:
        session.execute(update(Worker).values(seen_at=utc_now() - timedelta(minutes=5)))
    row, known = the_run(bench)
    assert (row.state, row.silent, known, row.points) == ("interrupted", True, "running", 6)
    bench.start(lease_s=2.0)
    eventually(lambda: the_run(bench)[1] == "interrupted")
    assert bench.ended(job).state == "interrupted"
    row, _ = the_run(bench)
    assert (row.silent, row.job_id, row.points) == (False, job, 6)
