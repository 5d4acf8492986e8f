"""What tests on a GPU are made of, tried with the torch target: no GPU is needed for these."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from gpu_report import Found, report_text
from gpu_runs import PROMPTS, TOLERANCE, Workbench, sure_tokens

from roundhouse.build.engine import Engine


def test_prompts_run_together_and_a_damaged_one_is_stopped_alone(tiny_engine: Engine, tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    undisturbed = bench.prompts(tiny_engine.folder, max_tokens=8)
    assert undisturbed["failures"] == {}
    assert undisturbed["tag_checks"] >= undisturbed["steps"] > 0
    assert {name: len(tokens) for name, tokens in undisturbed["tokens"].items()} == dict.fromkeys(PROMPTS, 8)
    assert {name: len(gaps) for name, gaps in undisturbed["gaps"].items()} == dict.fromkeys(PROMPTS, 8)
    disturbed = bench.prompts(tiny_engine.folder, max_tokens=8, damaged="victim")
    assert disturbed["failures"] == {"victim": "page_tag_mismatch"}
    assert disturbed["tag_mismatches"] == 1
    assert len(disturbed["tokens"]["victim"]) <= 2
    for name in PROMPTS.keys() - {"victim"}:
        sure = sure_tokens(undisturbed, name)
        assert disturbed["tokens"][name][: len(sure)] == sure


def test_tokens_are_sure_until_the_first_that_was_nearly_another() -> None:
    answers = {"tokens": {"a": [5, 6, 7, 8]}, "gaps": {"a": [3.0, TOLERANCE, 0.1, 4.0]}}
    assert sure_tokens(answers, "a") == [5, 6]


def test_a_report_has_every_test_with_its_reason_and_its_numbers() -> None:
    found = [
        Found("test_a.py::test_one", "passed", numbers={"tokens/s": "123"}),
        Found("test_a.py::test_two", "skipped", reason="no NVIDIA GPU | is seen"),
    ]
    text = report_text(found, ["H200, 590.44"], datetime(2026, 11, 30, 12, 5, tzinfo=UTC))
    assert text == (
        "# Tests on a GPU, 2026-11-30 12:05 UTC\n\n- H200, 590.44\n- 1 passed, 0 failed, 1 skipped\n\n"
        "| test | outcome | |\n| --- | --- | --- |\n"
        "| test_a.py::test_one | passed | tokens/s 123 |\n"
        "| test_a.py::test_two | skipped | no NVIDIA GPU / is seen |\n"
    )
