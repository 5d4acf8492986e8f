"""Which measurements count for an engine, and what follows from them."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from built import PLACE, add_built
from runs_made_up import FAST, SLOW, add_measured_engines, add_run

from roundhouse.build.engine import Engine
from roundhouse.console.benchmarks.row_records import EngineFacts, EngineWanted, RowSort
from roundhouse.console.benchmarks.rows import engine_rows
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.engines.recording import record_engine
from roundhouse.console.models import BenchmarkRun


@pytest.fixture
def measured(database: Database) -> Database:
    """Two engines that were measured, and one that was not."""
    with database.writing() as session:
        add_measured_engines(session)
    return database


def rows_of(database: Database, sort: Any = "-speed", price: float | None = None, **wanted: Any) -> list[EngineFacts]:
    with database.reading() as session:
        return list(engine_rows(session, EngineWanted(**wanted), sort, price).rows)


def test_speed_is_at_the_concurrency_asked_for(measured: Database) -> None:
    by_name = {row.name: row for row in rows_of(measured, at=1)}
    assert (by_name["slow"].speed, by_name["fast"].speed) == (pytest.approx(10), None)


def test_what_was_counted_is_told(measured: Database) -> None:
    fast, slow = rows_of(measured)
    assert (fast.kv_real, fast.checks, fast.mismatches, fast.integrity) == (8_192, 3_000, 0, 0)
    assert (slow.mismatches, slow.events, slow.integrity) == (2, 1, 3)


def test_the_newest_run_counts_that_nothing_disturbed(measured: Database) -> None:
    with measured.writing() as session:
        fast = add_built(session, FAST, "fast", weights="int4_awq")
        add_run(session, "c" * 12, manifest=fast, speeds={8: (300.0,)}, day=1)
        add_run(session, "d" * 12, manifest=fast, speeds={8: (999.0,)}, day=2, other_cores=1.5)
        add_run(session, "f" * 12, manifest=fast, speeds={8: (888.0,)}, day=3, state="failed")
    assert rows_of(measured)[0].run == "c" * 12
    with measured.writing() as session:
        for id_ in ("a" * 12, "c" * 12):
            session.get_one(BenchmarkRun, id_).deleted_at = utc_now()
    disturbed = rows_of(measured)[0]
    assert (disturbed.run, disturbed.noisy) == ("d" * 12, True)


def test_every_column_sorts_with_nothing_last(measured: Database) -> None:
    fields = {"checkpoint": "checkpoint_bytes", "when": "run_at"}
    for sort in get_args(RowSort):
        key = sort.removeprefix("-")
        values = [getattr(row, fields.get(key, key)) for row in rows_of(measured, sort, price=1.0)]
        known = [value for value in values if value is not None]
        assert values == [*sorted(known, reverse=sort[0] == "-"), *[None] * (len(values) - len(known))], sort


def test_a_price_is_paid_for_every_gpu(database: Database) -> None:
    with database.writing() as session:
        one = add_built(session, FAST, "one")
        two = one.model_copy(update={"id": SLOW, "recipe": one.recipe.model_copy(update={"tensor_parallel": 2})})
        record_engine(session, Engine(PLACE.engines / SLOW, two), "one", PLACE)
        for id_, manifest in (("a" * 12, one), ("b" * 12, two)):
            add_run(session, id_, manifest=manifest, speeds={8: (100.0,)})
    cost = {row.devices: row.price for row in rows_of(database, price=2.0)}
    assert cost[2] == pytest.approx(2 * (cost[1] or 0))
