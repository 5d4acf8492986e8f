"""Series over time, as somebody reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from browsing import BrowserMaker
from built import manifest_of
from counting import count_queries
from reading import text_of
from runs_made_up import FIRST, add_run
from sqlalchemy import update
from sqlalchemy.orm import Session

from roundhouse.console.benchmarks import trends
from roundhouse.console.benchmarks.regressions import Regression, check_regressions
from roundhouse.console.benchmarks.trend_records import TrendFilter
from roundhouse.console.benchmarks.trends import list_trends
from roundhouse.console.database.database import Database
from roundhouse.console.models import BenchmarkLevel, BenchmarkPoint
from roundhouse.console.paging import PageOf
from roundhouse.console.web.trend_charts import trend_charts

USUAL = (100.0, 101.0, 102.0, 103.0, 104.0)
PIN, NEWEST = f"{1:012x}", f"{3:012x}"


def add_series(
    session: Session,
    newest: Sequence[float],
    *,
    first: int = 1,
    pinned: bool = True,
    weights: str = "fp8",
    apart: float = 1,
    usual: Mapping[str, Any] | None = None,
    changed: Mapping[str, Any] | None = None,
) -> None:
    """Three runs of an engine, so many days apart; the first is pinned, and the last is what it is: so fast, and so changed."""
    manifest = manifest_of(f"{first:016x}", f"engine-{first}", weights=weights)
    for day, (speeds, more) in enumerate(((USUAL, usual), (USUAL, usual), (newest, changed or usual))):
        levels = {1: [each / 4 for each in speeds], 8: speeds}
        pin, at = pinned and day == 0, apart * day
        add_run(session, f"{first + day:012x}", manifest=manifest, speeds=levels, day=at, is_baseline=pin, **(more or {}))


def checked(database: Database) -> Regression:
    """What comes of the newest run."""
    with database.reading() as session:
        return check_regressions(session, [(PIN, NEWEST)])[NEWEST]


def flagged(database: Database) -> set[str]:
    """The charts on which the newest run is ringed."""
    with database.reading() as session:
        charts = trend_charts(list_trends(session, TrendFilter(), PageOf(size=5)).trends)
    return {chart.id for chart in charts if any(point.point.flag for each in chart.series for point in each.points)}


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


FAST_PREFILL = {512: (0.100, 0.101, 0.102), 2048: (0.400, 0.404, 0.408)}


def test_prefill_that_became_slower_is_flagged_and_nothing_else_is(browser: BrowserMaker, database: Database) -> None:
    slower = {length: [1.2 * each for each in times] for length, times in FAST_PREFILL.items()}
    with database.writing() as session:
        add_series(session, USUAL, usual={"prefill": FAST_PREFILL}, changed={"prefill": slower})
    assert (checked(database).state, checked(database).worse) == ("regressed", {"prefill_tokens_per_s"})
    assert flagged(database) == {"trend-prefill"}
    assert "Prefill tokens/s down by 16.7%" in text_of(browser("viewer"), "/benchmarks/trends")


@pytest.mark.parametrize(
    ("newest", "state"),
    [
        ({512: (0.101, 0.100, 0.102)}, "as before"),
        ({512: (0.12, 0.121, 0.122)}, "regressed"),  # three against three at one length decide
        ({512: (0.12, 0.121)}, "undecided"),
        ({64: (9.0, 9.0, 9.0)}, "as before"),  # another length
    ],
)
def test_prefill_is_tested_by_itself(database: Database, newest: dict[int, Sequence[float]], state: str) -> None:
    with database.writing() as session:
        add_series(session, USUAL, usual={"prefill": {512: FAST_PREFILL[512]}}, changed={"prefill": newest})
    assert checked(database).state == state


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (0, 1, "10 of 90 requests failed, in the baseline 0 of 80"),
        (1, 20, "200 of 280 requests failed, in the baseline 10 of 90"),
        (1, 1, None),
        (3, 0, None),
    ],
)
def test_requests_that_fail_are_worse(
    browser: BrowserMaker, database: Database, before: int, now: int, said: str | None
) -> None:
    with database.writing() as session:
        add_series(session, USUAL, usual={"failed": before}, changed={"failed": now})
    found = checked(database)
    if said is None:
        assert (found.state, found.worse) == ("as before", frozenset())
        return
    assert (found.state, found.worse) == ("regressed", {"failures"})
    assert flagged(database) == {"trend-failed"}
    text = text_of(browser("viewer"), "/benchmarks/trends?regressed=1")
    assert said in text
    assert "Failed requests" in text


def test_a_prompt_that_fails_counts_as_well(database: Database) -> None:
    failing = {"prefill": FAST_PREFILL, "failed_prompts": 1}
    with database.writing() as session:
        add_series(session, USUAL, usual={"prefill": FAST_PREFILL}, changed=failing)
    assert checked(database).worse == {"failures"}
    assert checked(database).words == "6 of 110 requests failed, in the baseline 0 of 104."


def test_prompts_that_nobody_answers_any_more_are_worse(database: Database) -> None:
    with database.writing() as session:
        add_series(session, USUAL, usual={"prefill": FAST_PREFILL}, changed={"prefill": FAST_PREFILL | {2048: (0.0,) * 3}})
    assert (checked(database).state, checked(database).worse) == ("regressed", {"prefill_tokens_per_s"})
    assert "No prompt of 2048 tokens was answered" in checked(database).words


@pytest.mark.parametrize(("column", "charts"), [("ttft_p50", {"trend-ttft"}), ("inter_token_p50", {"trend-inter_token"})])
def test_only_the_charts_of_what_became_worse_are_flagged(database: Database, column: str, charts: set[str]) -> None:
    with database.writing() as session:
        add_series(session, USUAL)
        for table in (BenchmarkPoint, BenchmarkLevel):
            worse = update(table).where(table.benchmark_id == NEWEST).values({column: 1.3 * getattr(table, column)})
            session.execute(worse)
    assert checked(database).worse == {column}
    assert flagged(database) == charts


def test_a_slower_run_is_flagged_where_it_is_slower(database: Database) -> None:
    with database.writing() as session:
        add_series(session, [0.9 * each for each in USUAL])
    assert checked(database).worse == {"output_tokens_per_s", "ttft_p50", "inter_token_p50"}
    assert flagged(database) == {"trend-most", "trend-alone", "trend-ttft", "trend-inter_token"}


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


def test_how_far_back_is_chosen_and_an_older_baseline_holds(
    browser: BrowserMaker, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.writing() as session:
        add_series(session, [0.9 * each for each in USUAL], apart=50)
        add_run(session, f"{99:012x}", model="long-ago", day=-300)
    monkeypatch.setattr(trends, "utc_now", lambda: FIRST + timedelta(days=110))
    viewer = browser("viewer")
    assert "1–2 of 2" in text_of(viewer, "/benchmarks/trends")
    text = text_of(viewer, "/benchmarks/trends?range=90d")
    assert "1–1 of 1" in text
    assert "0.900 × worse" in text, "against what was pinned before"
    page = viewer.get("/benchmarks/trends?range=90d").text
    assert f"run {NEWEST}" in page
    assert f"run {PIN}" not in page, "what is older is not drawn"
    assert "baseline of 1" in page
    assert '<option value="90d" selected>90 days</option>' in page
    assert "No series fits" not in text_of(viewer, "/benchmarks/trends?range=30d")
    assert text_of(viewer, "/benchmarks/trends?range=week", 422)


def test_of_runs_of_one_moment_the_same_ones_are_drawn_and_checked(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trends, "MOST_RUNS", 2)
    manifest = manifest_of(f"{1:016x}", "engine-1")
    ids = [f"{number:012x}" for number in (5, 1, 4, 2, 3)]
    with database.writing() as session:
        for id_ in ids:
            add_run(session, id_, manifest=manifest, speeds={8: USUAL})
    with database.reading() as session:
        (found,) = list_trends(session, TrendFilter(), PageOf()).trends
    assert [run.id for run in found.runs] == [f"{2:012x}", f"{1:012x}"]
    assert found.newest == found.runs[-1]


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
