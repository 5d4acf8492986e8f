"""JSON that others wrote: whatever stands where a number should, pages show the rest, on both databases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from built import add_built
from measured import benchmark_content
from runs_made_up import FAST, SLOW, add_run

from roundhouse.console.access.actor import Actor
from roundhouse.console.benchmarks.compare import compare_runs
from roundhouse.console.benchmarks.compare_asked import CompareAsked
from roundhouse.console.benchmarks.importing import add_imported
from roundhouse.console.benchmarks.published import beside_published
from roundhouse.console.benchmarks.queries import benchmark_detail
from roundhouse.console.benchmarks.reproducing import reproduction
from roundhouse.console.benchmarks.row_records import EngineFacts, EngineWanted
from roundhouse.console.benchmarks.rows import engine_rows
from roundhouse.console.benchmarks.sent import read_sent
from roundhouse.console.benchmarks.sent_files import SentFile
from roundhouse.console.benchmarks.trend_records import TrendFilter
from roundhouse.console.benchmarks.trends import list_trends
from roundhouse.console.benchmarks.whole_runs import benchmark_records
from roundhouse.console.database.database import Database
from roundhouse.console.models import BenchmarkPoint, BenchmarkRun, EngineRecord
from roundhouse.console.paging import PageOf
from roundhouse.errors import UsageError
from roundhouse.serve.benchmark.exporting import export, json_of
from roundhouse.serve.benchmark.records import Benchmark

ANN = Actor(1, "ann", "operator", "browser", "x")
BIG = 3_000_000_000
"""More than PostgreSQL's INTEGER holds."""
ODD: tuple[Any, ...] = ("many", 1.5, BIG, [1], {"a": 1}, None)
OLD, NEW = "a" * 12, "b" * 12


def put(record: dict[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    """A copy of JSON with something else at one place."""
    copy: dict[str, Any] = json.loads(json.dumps(record))
    place = copy
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = value
    return copy


def shown(database: Database, *runs: str) -> list[EngineFacts]:
    """All that is read of runs, without an error; returns the rows of engines."""
    with database.reading() as session:
        rows = engine_rows(session, EngineWanted(at=8), "name", 2.0).rows
        beside_published(session)
        compare_runs(session, CompareAsked(ids=runs, show_all=True))
        list_trends(session, TrendFilter(), PageOf())
        for run in runs:
            reproduction(benchmark_detail(session, run).header)
        export(benchmark_records(session, runs), "csv")
    return list(rows)


@pytest.mark.parametrize("odd", ODD)
def test_odd_values_in_what_is_there_hide_nothing_else(database: Database, odd: Any) -> None:
    """As a worker of another version, or somebody's hand, may have left them."""
    with database.writing() as session:
        for engine, run, weights in ((FAST, OLD, "bf16"), (SLOW, NEW, "int4_awq")):
            manifest = add_built(session, engine, f"engine-{engine[0]}", weights=weights)
            add_run(session, run, manifest=manifest, speeds={8: (100.0, 110.0, 120.0)})
    with database.writing() as session:
        engine = session.get_one(EngineRecord, FAST)
        engine.manifest = put(engine.manifest, ("recipe", "tensor_parallel"), odd)
        row = session.get_one(BenchmarkRun, OLD)
        row.header = put(row.header, ("subject", "settings", "page_tokens"), odd)
        point = session.get_one(BenchmarkPoint, (OLD, 8, 0))
        point.record = put(point.record, ("engine", "tag_checks"), BIG)
    fast, slow = shown(database, OLD, NEW)
    assert (fast.devices, slow.devices) == (BIG if odd == BIG else 1, 1)
    assert fast.checks == BIG + 2_000
    assert (slow.kv_real, slow.checks) == (8_192, 3_000)
    assert fast.kv_real == (512 * BIG if odd == BIG else None)
    with database.writing() as session:
        row = session.get_one(BenchmarkRun, OLD)
        header = put(row.header, ("subject", "settings", "kv"), {"tokens": odd})
        row.header = put(header, ("subject", "manifest", "versions"), odd)
    with database.reading() as session:
        compare_runs(session, CompareAsked(ids=(OLD, NEW), show_all=True))
        pairs = next(each.pairs for each in beside_published(session) if each.published.technique == "weights")
    lines = {line.label: (line.before, line.after) for line in pairs[0].lines}
    assert lines["KV tokens"] == (float(BIG) if odd == BIG else None, 8_192.0)


@pytest.mark.parametrize("odd", [*ODD, True, 10**30])
@pytest.mark.parametrize(
    "path",
    [
        ("manifest", "recipe"),
        ("manifest", "recipe", "tensor_parallel"),
        ("manifest", "recipe", "weights"),
        ("manifest", "versions"),
        ("manifest", "plan"),
        ("settings", "kv"),
        ("settings", "kv", "tokens"),
        ("settings", "page_tokens"),
        ("settings", "guard"),
    ],
)
def test_an_imported_run_is_refused_or_shown(database: Database, path: tuple[str, ...], odd: Any) -> None:
    content = benchmark_content(0)
    fields = {each: getattr(content, each) for each in ("header", "state", "ended_at", "problem", "points", "prefill")}
    told = json.loads(json_of([Benchmark(**fields)]))
    subject = told["runs"][0]["header"]["subject"]
    told["runs"][0]["header"]["subject"] = put(subject, path, odd)
    try:
        runs = read_sent([SentFile(name="export.json", content=json.dumps(told).encode())])
    except UsageError:
        return  # said at once, and nothing is there
    with database.writing() as session:
        ids = add_imported(session, ANN, runs)
    shown(database, *ids)


def test_numbers_that_no_column_holds_are_refused(database: Database) -> None:
    content = benchmark_content(0)
    fields = {each: getattr(content, each) for each in ("header", "state", "ended_at", "problem", "points", "prefill")}
    told = json.loads(json_of([Benchmark(**fields)]))
    told["runs"][0]["header"]["repeats"] = 10**30
    runs = read_sent([SentFile(name="export.json", content=json.dumps(told).encode())])
    with pytest.raises(UsageError, match="numbers that cannot be"), database.writing() as session:
        add_imported(session, ANN, runs)
