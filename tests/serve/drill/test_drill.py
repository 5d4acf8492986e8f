"""A short drill: what tags and contents can see is stopped in time, what they cannot see is told, and every run replays."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from typing import Any

import pytest

from roundhouse.build.home import Home
from roundhouse.serve.drill.drill import cases_of, run_drill
from roundhouse.serve.drill.kinds import KINDS, FaultName
from roundhouse.serve.drill.levels import Level
from roundhouse.serve.drill.report import DrillReport, KindReport
from roundhouse.serve.drill.synthetic_ground import synthetic_ground
from roundhouse.serve.drill.view import drill_table, drill_verdict
from roundhouse.serve.engine.integrity import IntegrityCheck

OFF, TAGS, ALL, SOME = Level("off"), Level("tags"), Level("tags+content"), Level("tags+content", 0.3)
SEEN_BY_TAGS = [name for name, kind in KINDS.items() if kind.seen_by == "tags"]
SEEN_BY_CONTENT = [name for name, kind in KINDS.items() if kind.seen_by == "content"]
ONLY_THE_GUARD_IS_MISLED: set[FaultName] = {"tag_update_lost", "tag_table_late"}
"""What runs is right, and the tag table says that it is not."""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Every fault that is found is an error in the log."""
    caplog.set_level(logging.CRITICAL)


def drill(level: Level, *kinds: FaultName | None, steps: int = 250, seed: int = 11) -> DrillReport:
    return run_drill(synthetic_ground, cases_of([level], kinds), seed=seed, steps=steps)


def only(report: DrillReport) -> KindReport:
    (kind,) = report.kinds
    return kind


@pytest.mark.parametrize("level", [TAGS, ALL], ids=["tags", "tags+content"])
@pytest.mark.parametrize("kind", SEEN_BY_TAGS)
def test_what_tags_see_is_stopped_before_a_token_comes_out(level: Level, kind: FaultName) -> None:
    report = drill(level, kind)
    found = only(report)
    assert report.passed
    assert found.sees
    assert 0 < found.effective == found.detected <= found.injected
    assert (found.leaked_tokens, found.false_alarms, found.delay_steps) == (0, 0, 0)


@pytest.mark.parametrize("kind", SEEN_BY_CONTENT)
def test_tags_cannot_see_what_lies_in_a_page(kind: FaultName) -> None:
    report = drill(TAGS, kind)
    found = only(report)
    assert not found.sees
    assert found.effective > 0
    assert found.detected == 0
    assert found.leaked_tokens > 0
    assert report.passed  # nobody claims that they are seen
    assert "tags cannot see it" in _text(report)


@pytest.mark.parametrize("kind", SEEN_BY_CONTENT)
def test_contents_are_seen_when_all_are_compared(kind: FaultName) -> None:
    found = only(drill(ALL, kind))
    assert found.sees
    assert 0 < found.effective == found.detected
    assert (found.leaked_tokens, found.false_alarms, found.delay_steps) == (0, 0, 0)


@pytest.mark.parametrize("kind", SEEN_BY_CONTENT)
def test_contents_are_seen_now_and_then_when_some_are_compared(kind: FaultName) -> None:
    found = only(drill(SOME, kind, steps=1500))
    assert not found.sees
    assert found.false_alarms == 0
    assert found.delay_steps > 0
    # The chance is 0.3 in each step, and a prompt may take several before its first token.
    assert found.effective > 40
    assert 0.15 < found.detected / found.effective < 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_looks_and_tokens_leak(kind: FaultName) -> None:
    """The faults are real: this is what they do to whoever does not check."""
    found = only(drill(OFF, kind))
    assert not found.sees
    assert found.effective > 0
    assert found.detected == 0
    assert (found.leaked_tokens > 0) is (kind not in ONLY_THE_GUARD_IS_MISLED)


@pytest.mark.parametrize("level", [OFF, TAGS, ALL], ids=["off", "tags", "tags+content"])
def test_without_faults_nothing_is_found_and_every_book_is_right(level: Level) -> None:
    report = drill(level, None, steps=600)
    found = only(report)
    assert report.passed
    assert (found.injected, found.effective, found.false_alarms, found.leaked_tokens) == (0, 0, 0, 0)
    assert found.grants > 500


def test_a_guard_that_finds_nothing_fails_the_drill_and_the_failure_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IntegrityCheck, "bad_rows", lambda self, prepared: [])
    report = drill(TAGS, "freed_early", steps=400)
    assert not report.passed
    assert only(report).detected < only(report).effective
    failure = report.failures[-1]
    again = drill(TAGS, "freed_early", steps=1, seed=failure.seed)
    assert again.failures == [failure]
    assert f"roundhouse drill --seed {failure.seed} --steps 1 --fault freed_early --guard tags" in drill_verdict(report)
    assert drill_verdict(report).startswith("FAILED")


def test_a_guard_that_cries_wolf_fails_the_drill(monkeypatch: pytest.MonkeyPatch) -> None:
    from roundhouse.serve.engine.integrity import Mismatch

    right = IntegrityCheck.bad_rows

    def nervous(self: IntegrityCheck, prepared: object) -> list[Mismatch]:
        return right(self, prepared) or ([Mismatch(0, 0, "tag")] if self.checks == 40 else [])  # type: ignore[arg-type]

    monkeypatch.setattr(IntegrityCheck, "bad_rows", nervous)
    report = drill(TAGS, None)
    assert not report.passed
    assert only(report).false_alarms > 0
    assert "--fault none" in drill_verdict(report)


def test_one_seed_decides_everything_whatever_the_process(session_home: Home) -> None:
    """Hashes of strings and bytes differ between processes; nothing may depend on them."""
    command = ["drill", "--home", str(session_home.path), "--seed", "5", "--steps", "300", "--json"]
    command += ["--guard", "tags+content", "--fault", "none", "--fault", "reference_count", "--fault", "late_write"]
    reports = [_run(*command, hash_seed=hash_seed) for hash_seed in ("1", "2")]
    assert reports[0] == reports[1]
    assert [kind["steps"] > 300 for kind in reports[0]["kinds"]] == [True] * 3


def test_another_seed_is_another_drill() -> None:
    assert drill(TAGS, "freed_early", seed=1).kinds != drill(TAGS, "freed_early", seed=2).kinds


def test_where_contents_are_sampled_only_what_they_can_see_is_played() -> None:
    assert [kind for _, kind in cases_of([SOME], [None, *KINDS])] == SEEN_BY_CONTENT
    assert [kind for _, kind in cases_of([ALL], [None, *KINDS])] == [None, *KINDS]


def _text(report: DrillReport) -> str:
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as capture:
        console.print(drill_table(report))
    return capture.get()


def _run(*arguments: str, hash_seed: str) -> Any:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-m", "roundhouse", *arguments], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stderr == ""
    return json.loads(done.stdout)
