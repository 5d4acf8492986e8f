"""What a benchmark would come to, and what it takes to measure one again."""

from __future__ import annotations

from built import add_built
from measured import add_benchmarks, benchmark_header

from roundhouse.console.benchmarks.foreseeing import foresee
from roundhouse.console.benchmarks.reproducing import reproduction
from roundhouse.console.benchmarks.requests import BenchmarkRequest
from roundhouse.console.database.database import Database
from roundhouse.console.engines.queries import engine_detail
from roundhouse.serve.measurement.about import Subject

ENGINE = "0" * 16


def test_requests_are_counted_and_time_is_judged_by_the_latest_run(database: Database) -> None:
    wanted = BenchmarkRequest(engine_id=ENGINE, concurrencies=(1, 8), repeats=2, prefill_lengths=(64,))
    with database.writing() as session:
        unknown = foresee(session, wanted)
        add_benchmarks(session, 5)  # of which the first and the last are of this engine
        known = foresee(session, wanted)
        slower = foresee(session, wanted.model_copy(update={"repeats": 4}))
    assert (unknown.points, unknown.requests, unknown.prefill_requests) == (4, 2 * (8 + 32), 16)
    assert unknown.output_tokens == unknown.requests * 64
    assert unknown.seconds is None
    assert known.judged_by == "b00000000004"
    assert known.seconds is not None
    assert slower.seconds is not None
    assert 30 < known.seconds < slower.seconds < 2 * known.seconds


def test_an_engine_that_nobody_measured_has_no_numbers(database: Database) -> None:
    with database.writing() as session:
        add_built(session, ENGINE)
        nothing = engine_detail(session, ENGINE)
        add_benchmarks(session, 5)
        found = engine_detail(session, ENGINE)
    assert (nothing.benchmarks, nothing.evaluations, nothing.latest_benchmark_id, nothing.tokens_per_s_most) == (
        0,
        0,
        None,
        None,
    )
    assert (found.benchmarks, found.latest_benchmark_id, found.concurrency_most) == (2, "b00000000004", 32)
    assert found.tokens_per_s_most


def test_a_run_is_reproduced_by_its_command_its_recipe_and_its_versions() -> None:
    told = reproduction(benchmark_header())
    assert told.command.startswith("roundhouse bench tiny-bf16-bf16")
    assert told.recipe.startswith("model: demo:smollm2\n")
    assert ("aiperf", "0.13.0") in told.versions
    assert ("torch", "2.9.0") in told.versions
    assert not any("built with" in name for name, _ in told.versions), "the same versions are told once"
    elsewhere = reproduction(benchmark_header(subject=Subject(kind="endpoint", name="m", model="m", url="http://gpu:8000")))
    assert elsewhere.recipe == ""
    assert elsewhere.settings == ()
