"""What the planner learns from benchmarks, and from which."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from benchmark_runs import made_benchmark, made_point, stored

from roundhouse.build.engine import Engine
from roundhouse.build.hardware import this_machine
from roundhouse.build.home import Home
from roundhouse.build.models.sources import look_up
from roundhouse.build.planner import gpus
from roundhouse.build.planner.decode import MeasuredRun
from roundhouse.build.planner.gpus import hardware_called, same_device
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.recipe import GUARD_SAMPLE, recipe_from
from roundhouse.serve.benchmark.calibration import decode_rows_of, is_of, measured_in, measured_runs
from roundhouse.serve.benchmark.points import EngineCounts
from roundhouse.serve.benchmark.records import Benchmark
from roundhouse.serve.measurement.about import Environment, Subject
from roundhouse.serve.measurement.engines import subject_of
from roundhouse.serve.measurement.environment import environment_of
from roundhouse.serve.measurement.gpus import NO_GPUS
from roundhouse.serve.settings import EngineSettings, Overrides

SPEEDS = {1: [100.0, 101.0, 99.0], 8: [100.0, 102.0, 98.0]}


def planned(**recipe: Any) -> Plan:
    given = recipe_from({"model": "shape:smollm2-135m", "target": "torch", "kv_cache_tokens": 4096, **recipe})
    shape, inventory = look_up(given.model)
    return make_plan(given, shape, inventory, hardware_called("cpu", given))


def run_of(plan: Plan, id_: str = "a" * 12, *, batch: int = 32, ran: dict[str, Any] | None = None, **header: Any) -> Benchmark:
    """A run of the plan's engine, which ran as planned but for ``ran``."""
    manifest = {"plan": plan.model_dump(mode="json"), "recipe": plan.recipe.model_dump(mode="json")}
    as_planned = {"guard": plan.recipe.guard, "guard_sample": GUARD_SAMPLE, "kernels": "auto", "precision": "engine"}
    settings = {**as_planned, "max_batch_size": batch, **(ran or {})}
    subject = Subject(kind="engine", name="smol", model="m", manifest=manifest, settings=settings)
    environment = Environment(host="here", hardware=plan.hardware, versions={})
    return made_benchmark(SPEEDS, id_=id_, **{"subject": subject, "environment": environment, **header})


def test_a_row_is_of_tokens_between_and_carries_its_run() -> None:
    run = run_of(planned())
    rows = decode_rows_of(run.header, run.points)
    assert [(row.concurrency, row.run) for row in rows] == [(1, "a" * 12), (8, "a" * 12)]
    inter_token = run.points[0].inter_token
    assert inter_token is not None
    assert rows[0].tokens_per_s == pytest.approx(1 / inter_token.p50)
    assert rows[0].context == round((2000 + 1000 / 2) / 8)


def test_a_concurrency_at_which_requests_had_to_wait_has_no_row() -> None:
    counts = dict.fromkeys(EngineCounts.model_fields, 0)
    waited, paused, fine = (
        EngineCounts(**{**counts, "running_most": running, "preemptions": preemptions})
        for running, preemptions in ((3, 0), (4, 1), (4, 0))
    )
    run = run_of(planned(), batch=8)
    points = [
        made_point(4, 0, engine=waited),
        made_point(5, 0, engine=paused),
        made_point(16, 0),
        made_point(2, 0, other_cores=1.0),
        made_point(6, 0, inter_token=None),
        made_point(7, 0),
        made_point(3, 0, engine=fine),
    ]
    assert [row.concurrency for row in decode_rows_of(run.header, points)] == [3, 7]


@pytest.mark.parametrize("other", [{"weights": "bf16"}, {"kv_cache": "bf16"}, {"group_size": 32}])
def test_runs_of_another_recipe_are_not_of_the_plan(other: dict[str, Any]) -> None:
    plan = planned()
    assert is_of(run_of(plan).header, plan)
    assert is_of(run_of(planned(max_batch_size=4, name="x", seed=9)).header, plan)
    assert not is_of(run_of(planned(**other)).header, plan)


@pytest.mark.parametrize("ran", [{"guard": "off"}, {"kernels": "torch"}, {"kernels": "native"}, {"precision": "reference"}])
def test_runs_that_ran_otherwise_than_planned_are_not_of_the_plan(ran: dict[str, Any]) -> None:
    plan = planned()
    assert not is_of(run_of(plan, ran=ran).header, plan)
    assert is_of(run_of(planned(guard="tags"), ran={"guard": "off"}).header, planned(guard="off"))


def test_a_share_of_checked_pages_counts_where_pages_are_checked() -> None:
    plan = planned(guard="tags+content", guard_sample=0.5)
    assert is_of(run_of(plan, ran={"guard_sample": 0.5}).header, plan)
    assert not is_of(run_of(plan).header, plan)
    assert is_of(run_of(planned(), ran={"guard_sample": 0.5}).header, planned())


def test_a_run_of_which_nobody_knows_how_it_ran_is_not_of_the_plan() -> None:
    plan = planned()
    header = run_of(plan).header
    unknown = header.model_copy(update={"subject": header.subject.model_copy(update={"settings": None})})
    assert not is_of(unknown, plan)


def test_a_gpu_is_the_same_as_the_machine_calls_it_and_as_the_table_does() -> None:
    given = recipe_from({"model": "shape:smollm2-135m", "target": "torch"})
    plan = planned()
    planned_for = plan.model_copy(update={"hardware": hardware_called("h200", given)})
    for name, same in (("NVIDIA H200", True), ("NVIDIA B200", False), ("Some GPU", False)):
        hardware = planned_for.hardware.model_copy(update={"name": name})
        run = run_of(plan, environment=Environment(host="x", hardware=hardware, versions={}))
        assert is_of(run.header, planned_for) is same


def test_what_a_run_here_writes_down_of_an_engine_calibrates_the_plan_of_it(tiny_engine: Engine, tmp_path: Path) -> None:
    """Nothing of the header is made up: subject and environment are what the benchmark itself records on this machine."""
    settings = EngineSettings.for_engine(tiny_engine, Overrides(max_batch_size=8), free_memory=this_machine().free_memory)
    recipe = tiny_engine.manifest.recipe
    environment = environment_of(recipe, NO_GPUS, None, threading.Event())
    # About 100 tokens are held: tiny engines have no room for more.
    points = [
        made_point(n, 0, speed, input_tokens=640, output_tokens=320) for n, speed in ((1, 100.0), (6, 300.0), (16, 500.0))
    ]
    run = made_benchmark({}, subject=subject_of(tiny_engine, settings), environment=environment)
    stored(tmp_path, run.model_copy(update={"points": tuple(points)}))
    shape, inventory = look_up(recipe.model)
    hardware = hardware_called(None, recipe)
    rows = measured_in(Home(tmp_path), make_plan(recipe, shape, inventory, hardware))
    assert {row.concurrency: row.run for row in rows} == {1: run.id, 6: run.id}, "16 did not run at once"
    told = make_plan(recipe, shape, inventory, hardware, measured=rows).decode
    assert {row.concurrency: (row.basis, row.run) for row in told} == {1: ("measured", run.id), 6: ("measured", run.id)}
    wide = recipe.model_copy(update={"max_batch_size": 32, "kv_cache_tokens": 4096})
    more = tuple(MeasuredRun(n, n * 10.0, 100, run.id) for n in (1, 16))
    told = make_plan(wide, shape, inventory, hardware, measured=more).decode
    assert {row.concurrency: (row.basis, row.run) for row in told}[8] == ("fitted", run.id)


def test_the_hardware_of_an_engine_is_what_its_target_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = hardware_called("h200").model_copy(update={"name": "NVIDIA H200"})
    monkeypatch.setattr(gpus, "local_gpu", lambda: gpu)
    needs, needs_not = (recipe_from({"model": "m", "target": target}) for target in ("tensorrt", "torch"))
    found = [environment_of(recipe, NO_GPUS, None, threading.Event()).hardware for recipe in (needs, needs_not)]
    assert [each and each.kind for each in found] == ["cuda", "cpu"]
    assert same_device(found[0] or gpu, hardware_called("h200"))


def test_runs_of_another_machine_or_of_an_endpoint_are_not_of_the_plan() -> None:
    plan = planned()
    elsewhere = plan.hardware.model_copy(update={"name": "Another CPU"})
    assert not is_of(run_of(plan, environment=Environment(host="x", hardware=elsewhere, versions={})).header, plan)
    assert not is_of(run_of(plan, environment=Environment(host="x", hardware=None, versions={})).header, plan)
    assert not is_of(run_of(plan, subject=Subject(kind="endpoint", name="x", model="shape:smollm2-135m")).header, plan)


def test_imported_runs_are_no_measurement_of_this_machine() -> None:
    plan = planned()
    assert not is_of(run_of(plan, imported_from="export.json").header, plan)
    own, imported = run_of(plan), run_of(plan, "b" * 12, imported_from="export.json")
    assert {row.run for row in measured_runs([imported, own], plan)} == {own.id}


def test_the_first_finished_run_that_has_rows_is_taken_alone() -> None:
    plan = planned()
    broken = run_of(plan, "b" * 12).model_copy(update={"state": "interrupted"})
    empty = run_of(plan, "c" * 12).model_copy(update={"points": ()})
    found = measured_runs(
        [broken, empty, run_of(planned(kv_cache="bf16"), "d" * 12), run_of(plan, "e" * 12), run_of(plan)], plan
    )
    assert {row.run for row in found} == {"e" * 12}
    assert measured_runs([broken], plan) == []


def test_the_newest_run_of_a_home_is_taken_and_damaged_ones_passed_over(tmp_path: Path) -> None:
    plan = planned()
    assert measured_in(Home(tmp_path), plan) == []
    for id_ in ("a" * 12, "b" * 12, "c" * 12):
        stored(tmp_path, run_of(plan, id_))
    (tmp_path / "benchmarks" / ("c" * 12) / "header.json").write_text("{")
    assert {row.run for row in measured_in(Home(tmp_path), plan)} == {"b" * 12}


def plan_command(home: Path, tmp_path: Path) -> tuple[dict[str, Any], set[str]]:
    """The plan's JSON, and the modules that were loaded for it."""
    code = (
        "import sys, json, roundhouse.__main__ as main\n"
        "words = 'plan shape:smollm2-135m --target torch --gpu cpu --kv-tokens 4096 --json'\n"
        "sys.argv = ['roundhouse', *words.split()]\n"
        "try: main.main()\n"
        "except SystemExit: pass\n"
        f"open({str(tmp_path / 'modules')!r}, 'w').write('\\n'.join(sys.modules))"
    )
    environment = {**os.environ, "ROUNDHOUSE_HOME": str(home)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return json.loads(result.stdout), set((tmp_path / "modules").read_text().split())


def test_a_plan_uses_the_runs_of_its_home_and_loads_nothing_for_them_where_there_are_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    answer, modules = plan_command(home, tmp_path)
    assert answer["decode"] == []
    assert not {f"roundhouse.serve.benchmark.{name}" for name in ("calibration", "records", "store")} & modules
    stored(home, run_of(planned()))
    answer, modules = plan_command(home, tmp_path)
    assert [(row["concurrency"], row["basis"], row["run"]) for row in answer["decode"]] == [
        (1, "measured", "a" * 12),
        (8, "measured", "a" * 12),
    ]
    assert any(f"measured in benchmark run {'a' * 12}" in text for text in answer["assumptions"])
    assert not {"numpy", "scipy", "torch", "fastapi", "pyarrow"} & modules
