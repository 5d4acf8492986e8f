"""Series over time, as somebody reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from browsing import BrowserMaker
from built import manifest_of
from counting import count_queries
from reading import text_of
from runs_made_up import add_run
from sqlalchemy import update
from sqlalchemy.orm import Session

from roundhouse.console.benchmarks.regressions import check_regressions
from roundhouse.console.database.database import Database
from roundhouse.console.models import BenchmarkPoint

USUAL = (100.0, 101.0, 102.0, 103.0, 104.0)
PIN, NEWEST = f"{1:012x}", f"{3:012x}"


def add_series(session: Session, newest: Sequence[float], *, first: int = 1, pinned: bool = True, weights: str = "fp8") -> None:
    """Three runs of an engine, a day apart; the first is pinned, and the last is what it is."""
    manifest = manifest_of(f"{first:016x}", f"engine-{first}", weights=weights)
    for day, speeds in enumerate((USUAL, USUAL, newest)):
        levels = {1: [each / 4 for each in speeds], 8: speeds}
        add_run(session, f"{first + day:012x}", manifest=manifest, speeds=levels, day=day, is_baseline=pinned and day == 0)


def test_a_series_that_became_worse_is_flagged(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_series(session, [0.9 * each for each in USUAL])
        add_series(session, USUAL, first=11, weights="bf16")
    viewer = browser("viewer")
    text = text_of(viewer, "/benchmarks/trends")
    assert "1 series is worse than the baseline" in text
    assert re.search(r"0\.900 × worse Output tokens/s down by 10\.0%", text)
    assert "1.000 × as before" in text
    assert text.index("0.900 ×") < text.index("1.000 ×")  # what became worse comes first
    page = viewer.get("/benchmarks/trends").text
    assert "worse than the baseline" in page
    assert "baseline of 1" in page
    assert f"/benchmarks/compare?run={PIN}&amp;run={NEWEST}" in page
    only = text_of(viewer, "/benchmarks/trends?regressed=1")
    assert "as before" not in only
    assert "0.900 ×" in only


@pytest.mark.parametrize(
    ("newest", "state"),
    [
        ([0.99 * each for each in USUAL], "as before"),  # sure, and tolerated
        ([50.0, 150.0, 60.0, 140.0, 90.0], "as before"),  # worse, and all noise
        ([1.2 * each for each in USUAL], "as before"),
        ([0.5 * USUAL[0]], "undecided"),  # worse, and one repeat of it
    ],
)
def test_nothing_is_flagged_that_repeats_do_not_support(database: Database, newest: list[float], state: str) -> None:
    with database.writing() as session:
        add_series(session, newest)
    with database.reading() as session:
        found = check_regressions(session, [(PIN, NEWEST)])
    assert found[NEWEST].state == state


def test_a_run_that_fell_silent_is_the_worst_there_is(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_series(session, USUAL)
        points = (BenchmarkPoint.benchmark_id == NEWEST,)
        silent = {"output_tokens_per_s": 0.0, "ttft_p50": None, "inter_token_p50": None}
        session.execute(update(BenchmarkPoint).where(*points).values(**silent))
    text = text_of(browser("viewer"), "/benchmarks/trends")
    assert "1 series is worse than the baseline" in text
    assert "No tokens came out at" in text


def test_without_a_pin_the_page_says_how_to_set_one(browser: BrowserMaker, database: Database) -> None:
    viewer = browser("viewer")
    assert "pin a good one as its baseline" in text_of(viewer, "/benchmarks/trends")
    with database.writing() as session:
        add_series(session, USUAL, pinned=False)
    text = text_of(viewer, "/benchmarks/trends")
    assert "No baseline is pinned here" in text
    assert "none pinned" in text


def test_series_are_filtered_and_paged(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        for number in range(7):
            add_run(session, f"{number:012x}", model=f"model-{number}")
            add_run(session, f"{number + 100:012x}", model=f"model-{number}", state="failed")
    viewer = browser("viewer")
    assert "1–5 of 7" in text_of(viewer, "/benchmarks/trends")
    assert "6–7 of 7" in text_of(viewer, "/benchmarks/trends?page=2")
    one = text_of(viewer, "/benchmarks/trends?model=model-3")
    assert "1–1 of 1" in one
    assert "model-4, as" not in one
    assert "No series fits these filters" in text_of(viewer, "/benchmarks/trends?model=none")


def test_more_series_take_no_more_statements(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_series(session, USUAL)
    viewer = browser("viewer")
    viewer.get("/benchmarks/trends")
    with count_queries(database) as few:
        viewer.get("/benchmarks/trends")
    with database.writing() as session:
        for number in range(2, 6):
            add_series(session, USUAL, first=10 * number, weights=("fp8", "bf16", "int4_awq", "fp8")[number - 2])
    with count_queries(database) as many:
        viewer.get("/benchmarks/trends")
    assert len(many) == len(few)
