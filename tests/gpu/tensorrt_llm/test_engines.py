"""Engines of TensorRT-LLM on a real GPU: built from SmolLM2, run in our loop, and compared with the torch target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gpu_runs import PROMPTS, Workbench, sure_tokens

from roundhouse.build.engine import read_manifest
from roundhouse.build.planner.gpus import local_gpu

Record = Callable[[str, object], None]


@pytest.fixture
def there(theirs: Callable[[str], Workbench]) -> Workbench:
    return theirs("tensorrt")


def test_it_is_built_for_this_gpu_with_its_page_check(engine: Path, record_property: Record) -> None:
    manifest = read_manifest(engine)
    compiled, here = manifest.compiled, local_gpu()
    assert compiled is not None
    assert here is not None
    assert compiled.compute_capability == here.compute_capability
    assert compiled.guard is not None
    assert {f"compiled/{name}" for name in ("config.json", "rank0.engine", compiled.guard.file)} <= manifest.files.keys()
    record_property("TensorRT-LLM", compiled.versions["tensorrt_llm"])
    record_property("TensorRT", compiled.versions["tensorrt"])
    record_property("seconds", {name: round(seconds, 1) for name, seconds in manifest.stage_seconds.items()})


def test_greedy_tokens_are_those_of_the_torch_target(
    there: Workbench, engine: Path, torch_answers: Any, record_property: Record
) -> None:
    answers = there.prompts(engine)
    assert answers["failures"] == {}
    compared = 0
    for name in PROMPTS:
        sure = sure_tokens(torch_answers, name)
        compared += len(sure)
        assert answers["tokens"][name][: len(sure)] == sure, name
    assert compared > 0
    same = sum(
        one == other
        for name in PROMPTS
        for one, other in zip(answers["tokens"][name], torch_answers["tokens"][name], strict=True)
    )
    record_property("tokens that had to be the same", compared)
    record_property("tokens that were", same)


def test_every_step_is_checked(there: Workbench, engine: Path) -> None:
    answers = there.prompts(engine)
    assert answers["tag_checks"] >= answers["steps"] > 0
    assert answers["tag_mismatches"] == 0


def test_a_page_that_is_no_longer_its_own_ends_exactly_that_request(there: Workbench, engine: Path) -> None:
    undisturbed, disturbed = there.prompts(engine), there.prompts(engine, damaged="victim")
    assert disturbed["failures"] == {"victim": "page_tag_mismatch"}
    assert disturbed["tag_mismatches"] == 1
    assert len(disturbed["tokens"]["victim"]) <= 2
    for name in PROMPTS.keys() - {"victim"}:
        sure = sure_tokens(undisturbed, name)
        assert disturbed["tokens"][name][: len(sure)] == sure, name


@pytest.mark.timeout(1800)
def test_a_drill_stops_every_fault_that_tags_can_see(there: Workbench, engine: Path, record_property: Record) -> None:
    report = there.roundhouse("drill", engine.name, "--guard", "tags", "--steps", "50", "--seed", "1")
    assert report["passed"], report
    record_property("faults", sum(kind["injected"] for kind in report["kinds"]))
    record_property("stopped", sum(kind["detected"] for kind in report["kinds"]))


@pytest.mark.timeout(1800)
def test_what_the_page_check_costs(there: Workbench, engine: Path, record_property: Record) -> None:
    """Numbers for the support table; nothing is judged by them."""
    load = ("--bare", "--concurrency", "1,16", "--input-tokens", "128", "--output-tokens", "64", "--repeats", "3")
    runs = there.roundhouse("bench", *(f"{engine.name}:guard={guard}" for guard in ("off", "tags")), *load)["runs"]
    for guard, run in zip(("off", "tags"), runs, strict=True):
        assert run["state"] == "finished"
        speeds: dict[int, list[float]] = {}
        for point in run["points"]:
            speeds.setdefault(point["concurrency"], []).append(point["output_tokens"] / point["duration_s"])
        for concurrency, found in speeds.items():
            middle = sorted(found)[len(found) // 2]
            record_property(f"tokens/s, guard {guard}, {concurrency} at once", f"{middle:.0f}")
