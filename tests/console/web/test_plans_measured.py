"""Plans take their speeds from what was measured of the same engine on the same hardware, and say which run that is."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from browsing import ORIGIN, BrowserMaker
from built import ID, manifest_of
from counting import count_queries
from reading import text_of
from runs_made_up import add_run

from roundhouse.build.engine import Manifest
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import BenchmarkRun

RUN = "ab" * 6


@pytest.fixture
def manifest() -> Manifest:
    return manifest_of(ID, weights="int4_awq")


@pytest.fixture
def measured(database: Database, manifest: Manifest) -> Database:
    """One run of an engine on its hardware: 90 tokens a second alone."""
    with database.writing() as session:
        add_run(session, RUN, manifest=manifest, hardware=manifest.plan.hardware, speeds={1: (90.0, 90.0, 90.0)})
    return database


def asked(manifest: Manifest, **more: str) -> str:
    recipe = manifest.recipe
    given = {"model": recipe.model, "weights": recipe.weights, "device": manifest.plan.hardware.name, "target": recipe.target}
    return f"/plan?{urlencode(given | more)}"


def test_a_plan_is_fitted_to_a_run_and_names_it(browser: BrowserMaker, measured: Database, manifest: Manifest) -> None:
    viewer = browser("viewer")
    text = text_of(viewer, asked(manifest))
    assert "fitted, run abababab" in text
    assert f'href="/benchmarks/{RUN}"' in viewer.get(asked(manifest)).text
    assert f"that of benchmark run {RUN} of this engine" in text
    assert "90.0 measured, run abababab" in text_of(viewer, asked(manifest, request_tokens="312"))  # as long as those


@pytest.mark.parametrize("other", [{"weights": "fp8"}, {"kv_cache": "bf16"}, {"device": "L40S"}, {"tensor_parallel": "2"}])
def test_another_engine_or_hardware_learns_nothing_of_it(
    browser: BrowserMaker, measured: Database, manifest: Manifest, other: dict[str, str]
) -> None:
    text = text_of(browser("viewer"), asked(manifest, **other))
    assert "derived" in text
    assert "fitted" not in text


def test_programs_get_the_same(browser: BrowserMaker, measured: Database, manifest: Manifest) -> None:
    operator = browser("operator")
    recipe = {"model": manifest.recipe.model, "weights": "int4_awq", "target": manifest.recipe.target}
    body: Any = {"recipe": recipe, "device": manifest.plan.hardware.name}
    answer = operator.post("/api/v1/plans", json=body, headers={"origin": ORIGIN, "x-form-token": operator.form_token()})
    assert {(row["basis"], row["run"]) for row in answer.json()["decode"]} >= {("fitted", RUN)}


@pytest.mark.parametrize("change", [{"deleted_at": utc_now()}, {"state": "failed"}])
def test_deleted_and_failed_runs_count_for_nothing(
    browser: BrowserMaker, measured: Database, manifest: Manifest, change: dict[str, Any]
) -> None:
    with measured.writing() as session:
        for key, value in change.items():
            setattr(session.get_one(BenchmarkRun, RUN), key, value)
    assert "fitted" not in text_of(browser("viewer"), asked(manifest))


def test_damaged_headers_are_passed_over(browser: BrowserMaker, measured: Database, manifest: Manifest) -> None:
    with measured.writing() as session:
        add_run(session, "cd" * 6, manifest=manifest, hardware=manifest.plan.hardware, day=1)
        session.get_one(BenchmarkRun, "cd" * 6).header = {"schema_version": 99}
    assert "fitted, run abababab" in text_of(browser("viewer"), asked(manifest))


def test_a_long_history_takes_no_more_statements(browser: BrowserMaker, measured: Database, manifest: Manifest) -> None:
    viewer = browser("viewer")
    viewer.get(asked(manifest))
    with count_queries(measured) as few:
        viewer.get(asked(manifest))
    with measured.writing() as session:
        for number in range(20):
            add_run(session, f"{number:012x}", manifest=manifest, hardware=manifest.plan.hardware, day=number + 1)
    with count_queries(measured) as many:
        viewer.get(asked(manifest))
    assert len(many) == len(few)
