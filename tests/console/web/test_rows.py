"""Engines side by side, as somebody reads them, and as a spreadsheet does."""

from __future__ import annotations

import csv
import io

import pytest
from browsing import BrowserMaker
from built import add_built
from counting import count_queries
from reading import text_of
from runs_made_up import NEVER, add_measured_engines, add_run

from roundhouse.console.database.database import Database


@pytest.fixture
def measured(database: Database) -> Database:
    """Two engines that were measured, and one that was not."""
    with database.writing() as session:
        add_measured_engines(session)
    return database


def test_a_row_says_all_of_an_engine(browser: BrowserMaker, measured: Database) -> None:
    text = text_of(browser("viewer"), "/benchmarks/rows?price=3.6")
    assert "fast" in text
    assert "never 3" not in text
    # 3.6 an hour is a thousandth a second; 210 tokens in it
    assert "8,192 210 5,120 4.76 -2.0 failed clean 3,000 checks" in text
    assert "3 found 1,000 checks, 2 mismatches, 1 event" in text
    assert "Which run counts" in text


def test_what_was_not_measured_there_is_said(browser: BrowserMaker, measured: Database) -> None:
    assert "not at 1" in text_of(browser("viewer"), "/benchmarks/rows?at=1")


def test_a_spreadsheet_gets_the_same(browser: BrowserMaker, measured: Database) -> None:
    with measured.writing() as session:
        add_run(session, "c" * 12, manifest=add_built(session, NEVER, "never"), speeds={8: (50.0,)})
    answer = browser("viewer").get("/benchmarks/rows.csv?price=3.6&sort=speed")
    assert answer.headers["content-type"].startswith("text/csv")
    assert 'filename="roundhouse-engines-at-8.csv"' in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["name"] for row in rows] == ["never", "slow", "fast"]
    fast = rows[-1]
    assert (fast["accuracy_gate"], fast["accuracy_difference_points"], fast["concurrency"]) == ("failed", "-2.0", "8")
    assert float(fast["price_per_million_tokens"]) == pytest.approx(4.76, abs=0.01)
    assert rows[0]["evaluation"] == ""


def test_an_empty_page_says_so_and_models_filter(browser: BrowserMaker, database: Database) -> None:
    viewer = browser("viewer")
    assert "No engine has been measured" in text_of(viewer, "/benchmarks/rows")
    assert "No engine of this model" in text_of(viewer, "/benchmarks/rows?model=none")
    assert viewer.get("/benchmarks/rows?at=0").status_code == 422
    assert "No engine has been measured" in text_of(viewer, "/benchmarks/rows?price=much")


def test_more_engines_take_no_more_statements(browser: BrowserMaker, measured: Database) -> None:
    viewer = browser("viewer")
    viewer.get("/benchmarks/rows")
    with count_queries(measured) as few:
        viewer.get("/benchmarks/rows")
    with measured.writing() as session:
        for number in range(8):
            manifest = add_built(session, f"{number + 99:016x}", f"more-{number}")
            add_run(session, f"{number:012x}", manifest=manifest)
    with count_queries(measured) as many:
        viewer.get("/benchmarks/rows")
    assert len(many) == len(few)
