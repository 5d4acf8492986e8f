"""Lists of benchmark runs, one of them, and what people put on them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from counting import count_queries
from measured import LONG_AGO, add_benchmarks, benchmark_content, benchmark_header
from populated import add_worker
from sqlalchemy import select

from roundhouse.console.access.actor import Actor
from roundhouse.console.benchmarks.deleting import delete_runs
from roundhouse.console.benchmarks.marking import set_baseline, set_note, set_tags
from roundhouse.console.benchmarks.queries import (
    benchmark_choices,
    benchmark_detail,
    benchmark_row,
    benchmark_rows,
    levels_by_run,
    list_benchmarks,
    newest_samples,
    samples_since,
)
from roundhouse.console.benchmarks.records import BenchmarkFilter, BenchmarkSort
from roundhouse.console.benchmarks.series import hardware_of, series_of
from roundhouse.console.benchmarks.whole_runs import benchmark_records
from roundhouse.console.database.database import Database
from roundhouse.console.errors import ConflictError, FieldError, ForbiddenError, NotFoundError
from roundhouse.console.jobs import NewJob, enqueue
from roundhouse.console.models import (
    AuditEntry,
    BenchmarkLevel,
    BenchmarkPoint,
    BenchmarkPrefill,
    BenchmarkRun,
    BenchmarkSample,
    RecordFile,
)
from roundhouse.console.paging import PageOf
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.measurement.about import Environment, Subject

ANN = Actor(1, "ann", "operator", "browser", "x")
EVE = Actor(2, "eve", "viewer", "browser", "x")


def listed(database: Database, sort: BenchmarkSort = "-began", **wanted: object) -> list[str]:
    with database.reading() as session:
        found = list_benchmarks(session, BenchmarkFilter.model_validate(wanted), PageOf(size=200), sort)
    assert found.total == len(found.items)
    return [row.id for row in found.items]


def test_filters_find_what_is_all_of_it(database: Database) -> None:
    with database.writing() as session:
        ids = add_benchmarks(session, 8)
        long = add_benchmarks(session, 1, first=8, workload=Workload(name="long", input_tokens=4096), state="failed")
        endpoint = Subject(kind="endpoint", name="llama", model="llama", url="http://gpu:8000", server="vLLM 0.32 on 8×H200")
        elsewhere = Environment(host="laptop", hardware=None, versions={})
        external = add_benchmarks(session, 1, first=9, subject=endpoint, environment=elsewhere, imported_from="result.json")
        set_tags(session, ANN, ids[1], ["Nightly", "nightly", " h200 "])
        set_note(session, ANN, ids[2], "after the driver 100% update_")
        set_baseline(session, ANN, ids[3], True)
    newest_first = [*external, *long, *reversed(ids)]
    assert listed(database) == newest_first
    assert listed(database, "began") == newest_first[::-1]
    assert listed(database, weights="int4_awq", kv_cache="fp8") == [ids[7], ids[3]]
    assert listed(database, engine=f"{1:016x}") == [ids[5], ids[1]]
    assert listed(database, hardware="vLLM 0.32 on 8×H200") == listed(database, imported=True) == external
    assert listed(database, state="failed") == listed(database, text="4096 in") == long
    assert listed(database, tag="nightly") == listed(database, text="NIGHTLY") == [ids[1]]
    assert listed(database, text="100%") == listed(database, text="driver update_") == [ids[2]]
    assert listed(database, text="driver nothing") == listed(database, text="driver_update") == []
    assert listed(database, baseline=True) == [ids[3]]
    assert listed(database, driver="vllm") == []
    assert listed(database, model="llama") == listed(database, text="VLLM 8×") == external
    same = benchmark_header(3)
    assert listed(database, series=series_of(same)) == [ids[7], ids[3]]
    assert listed(database, workload=Workload(name="other words").key) == [*external, *reversed(ids)]
    with database.reading() as session:
        choices = benchmark_choices(session)
    assert (choices.models, choices.tags) == (("demo:smollm2", "llama"), ("h200", "nightly"))
    assert [each.words for each in choices.workloads] == ["128 in, 64 out", "4096 in, 64 out"]


def test_sorting_by_a_number_puts_runs_without_one_last(database: Database) -> None:
    with database.writing() as session:
        ids = add_benchmarks(session, 4)
        (nothing,) = add_benchmarks(session, 1, first=4, part=0, state="interrupted")
    with database.reading() as session:
        rows = {row.id: row for row in benchmark_rows(session, [*ids, nothing, nothing, "none"])}
    assert list(rows) == [*ids, nothing]
    sorts: tuple[tuple[BenchmarkSort, str], ...] = (
        ("-most", "tokens_per_s_most"),
        ("-alone", "tokens_per_s_alone"),
        ("-prefill", "prefill_tokens_per_s"),
    )
    for sort, name in sorts:
        expected = sorted(ids, key=lambda id_: -getattr(rows[id_], name))
        assert listed(database, sort) == [*expected, nothing]
    assert listed(database, "most") == [*sorted(ids, key=lambda id_: rows[id_].tokens_per_s_most or 0), nothing]


def test_statements_do_not_grow_with_rows(database: Database) -> None:
    counts = []
    for first in (0, 20):
        with database.writing() as session:
            ids = add_benchmarks(session, 20, first=first, samples=2)
            for id_ in ids:
                set_tags(session, ANN, id_, ["a", "b"])
        with count_queries(database) as seen, database.reading() as session:
            list_benchmarks(session, BenchmarkFilter(text="tiny"), PageOf(size=200))
            benchmark_choices(session)
            benchmark_detail(session, ids[0])
            levels_by_run(session, ids)
            samples_since(session, ids[0])
        counts.append(len([each for each in seen if each.startswith(("SELECT", "WITH"))]))
    assert counts[0] == counts[1] == 3 + 1 + 6 + 1 + 2


def test_however_many_are_taken_away_or_deleted_it_takes_few_statements(database: Database) -> None:
    with database.writing() as session:
        ids = add_benchmarks(session, 51, samples=2, files=[("log", b"x")])
        imported = add_benchmarks(session, 5, first=60, host="", home="")
    with count_queries(database) as few, database.reading() as session:
        benchmark_records(session, ids[:1])
    with count_queries(database) as many, database.reading() as session:
        records = benchmark_records(session, [*reversed(ids), *imported])
    assert len(many) == len(few)
    assert [record.id for record in records] == [*reversed(ids), *imported]
    assert {len(record.points) for record in records} == {12}
    with database.reading() as session, pytest.raises(NotFoundError, match="no benchmark run nothing"):
        benchmark_records(session, [ids[0], "nothing"])
    with count_queries(database) as few, database.writing() as session:
        delete_runs(session, ANN, ids[:1])
    with count_queries(database) as many, database.writing() as session:
        delete_runs(session, ANN, [*ids[1:], *imported])
    assert len(many) == len(few) < 16
    assert listed(database) == []
    with database.reading() as session:
        left = {row.id: row.header for row in session.execute(select(BenchmarkRun.id, BenchmarkRun.header))}
        assert left == {id_: {} for id_ in ids}, "rows of runs that have folders stay until these are gone"
        assert len(session.scalars(select(AuditEntry.id)).all()) == 56
        for table in (BenchmarkPoint, BenchmarkPrefill, BenchmarkSample, BenchmarkLevel, RecordFile):
            assert session.scalars(select(table).limit(1)).all() == []


def test_what_is_followed_live_is_read_without_the_whole_run(database: Database) -> None:
    with database.writing() as session:
        (run,) = add_benchmarks(session, 1, samples=30)
    with count_queries(database) as seen, database.reading() as session:
        row = benchmark_row(session, run)
        last = newest_samples(session, run, 3)
    assert (row.id, row.points) == (run, 12)
    assert [each.number for each in last] == [27, 28, 29]
    assert not any("header" in each or "benchmark_point" in each for each in seen)
    with database.reading() as session:
        assert newest_samples(session, "nothing", 3) == ()
        with pytest.raises(NotFoundError):
            benchmark_row(session, "nothing")


def test_one_run_is_what_was_written_down(database: Database) -> None:
    content = benchmark_content(5, samples=4)
    with database.writing() as session:
        job = enqueue(session, NewJob("benchmark", "tiny", {}, "ann")).id
        (run,) = add_benchmarks(session, 1, first=5, samples=4, job_id=job)
    with database.reading() as session:
        found, (record,) = benchmark_detail(session, run), benchmark_records(session, [run])
    assert (record.header, record.points, record.prefill) == (content.header, content.points, content.prefill)
    assert found.job is not None
    assert (found.job.id, found.job.requested_by, found.engine_known) == (job, "ann", False)
    assert [level.concurrency for level in found.levels] == [1, 8, 16, 32]
    alone = [point.output_tokens_per_s for point in content.points if point.concurrency == 1]
    level = found.levels[0]
    assert (level.output_tokens_per_s_least, level.output_tokens_per_s_most) == (min(alone), max(alone))
    assert level.output_tokens_per_s == sorted(alone)[1]
    with database.reading() as session, pytest.raises(NotFoundError):
        benchmark_detail(session, "nothing")
    with database.reading() as session, pytest.raises(NotFoundError):
        samples_since(session, "nothing")


def test_marks_are_kept_when_more_is_measured_and_are_the_operators(database: Database) -> None:
    with database.writing() as session:
        (run,) = add_benchmarks(session, 1, part=0.5, state="running", host="", home="")
        set_note(session, ANN, run, "watch this")
        set_tags(session, ANN, run, ["a"])
        set_tags(session, ANN, run, ["a"])
        set_baseline(session, ANN, run, True)
    with database.writing() as session:
        add_benchmarks(session, 1, host="", home="")
    with database.reading() as session:
        found = benchmark_detail(session, run)
    assert (found.points, found.note, found.tags, found.is_baseline) == (12, "watch this", ("a",), True)
    assert listed(database, text="watch") == [run]
    for wrong in (["two words"], ["x" * 41], [f"t{number}" for number in range(21)], ["<b>"]):
        with pytest.raises(FieldError), database.writing() as session:
            set_tags(session, ANN, run, wrong)
    with pytest.raises(FieldError), database.writing() as session:
        set_note(session, ANN, run, "x" * 5000)
    with database.writing() as session:
        for forbidden in (
            lambda: set_note(session, EVE, run, "x"),
            lambda: set_tags(session, EVE, run, []),
            lambda: set_baseline(session, EVE, run, False),
            lambda: delete_runs(session, EVE, [run]),
        ):
            with pytest.raises(ForbiddenError):
                forbidden()
        delete_runs(session, ANN, [run])
        with pytest.raises(NotFoundError):
            set_note(session, ANN, run, "x")
        actions = [entry.action for entry in session.scalars(select(AuditEntry).order_by(AuditEntry.id))]
    assert actions == ["benchmark.note", "benchmark.tags", "benchmark.pin", "benchmark.delete"]
    assert listed(database) == []


def test_several_are_deleted_together_or_not_at_all(database: Database) -> None:
    add_worker(database)
    with database.writing() as session:
        ids = add_benchmarks(session, 2)
        running = add_benchmarks(session, 1, first=2, state="running")
    for wrong in ([*ids, "nothing"], [*ids, *running]):
        with pytest.raises((NotFoundError, ConflictError), match="nothing was deleted"), database.writing() as session:
            delete_runs(session, ANN, wrong)
    assert len(listed(database)) == 3
    with database.writing() as session:
        delete_runs(session, ANN, ids)
    assert listed(database) == running


def test_a_series_is_what_can_be_compared_over_time() -> None:
    first = benchmark_header(0)
    later = benchmark_header(4, seed=9, repeats=1, concurrencies=(1,), began_at=LONG_AGO + timedelta(days=9))
    renamed = first.subject.model_copy(
        update={"name": "x", "manifest": {"recipe": {**first.subject.recipe, "name": "x"}, "versions": {"torch": "3"}}}
    )
    assert series_of(first) == series_of(later) == series_of(benchmark_header(0, subject=renamed))
    hardware = first.environment.hardware
    assert hardware is not None
    slower = first.environment.model_copy(update={"hardware": hardware.model_copy(update={"cores": 2})})
    on_a_gpu = first.environment.model_copy(update={"hardware": hardware.model_copy(update={"name": "H200", "kind": "cuda"})})
    set_otherwise: tuple[dict[str, object], ...] = (
        {"kernels": "torch"},
        {"prefix_reuse": False},
        {"kv": {"tokens": 640, "binding_limit": "kv_cache_tokens"}},
    )
    unguarded = first.subject.model_copy(update={"settings": {"guard": "off"}})
    others = {
        series_of(each)
        for each in (
            first,
            benchmark_header(1),
            benchmark_header(0, driver="loop"),
            benchmark_header(0, workload=Workload(output_tokens=65)),
            benchmark_header(0, environment=slower),
            benchmark_header(0, environment=on_a_gpu),
            benchmark_header(0, subject=unguarded),
            *(
                benchmark_header(0, subject=first.subject.model_copy(update={"settings": {"guard": "tags", **each}}))
                for each in set_otherwise
            ),
        )
    }
    assert len(others) == 10


def test_gpus_that_a_machine_has_are_not_what_a_run_ran_on() -> None:
    """NVML lists all of them: an engine that runs on the CPU, or on one of eight, stays in its series when it is installed."""
    first = benchmark_header(0)
    with_nvml = first.environment.model_copy(update={"gpus": ("H200",) * 8})
    assert series_of(benchmark_header(0, environment=with_nvml)) == series_of(first)
    assert hardware_of(benchmark_header(0, environment=with_nvml)) == hardware_of(first) == first.ran_on
    endpoint = Subject(kind="endpoint", name="m", model="m", url="http://there/v1")
    unknown = first.environment.model_copy(update={"hardware": None})
    assert hardware_of(benchmark_header(0, environment=unknown, subject=endpoint)) == "http://there/v1"
    unknown = unknown.model_copy(update={"gpus": ("H200",) * 8})
    assert hardware_of(benchmark_header(0, environment=unknown, subject=endpoint)) == "H200", "how many is not known"
    told = endpoint.model_copy(update={"server": "vLLM on 2×H200"})
    assert hardware_of(benchmark_header(0, environment=unknown, subject=told)) == "vLLM on 2×H200"
