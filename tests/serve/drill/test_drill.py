"""A short drill: what tags and contents can see is stopped in time, what they cannot see is told, and every run replays."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest

from roundhouse.build.home import Home
from roundhouse.serve.drill.drill import cases_of, run_drill
from roundhouse.serve.drill.kinds import KINDS, FaultName
from roundhouse.serve.drill.levels import Level
from roundhouse.serve.drill.report import DrillReport, KindReport
from roundhouse.serve.drill.synthetic_ground import synthetic_ground
from roundhouse.serve.drill.view import drill_table, drill_verdict
from roundhouse.serve.engine.batch import make_batch
from roundhouse.serve.engine.integrity import ContentCheck, IntegrityCheck, Mismatch
from roundhouse.serve.engine.pool import Grant, PagePool
from roundhouse.serve.engine.scheduler import Scheduler

OFF, TAGS, ALL, SOME = Level("off"), Level("tags"), Level("tags+content"), Level("tags+content", 0.3)
SEEN_BY_TAGS = [name for name, kind in KINDS.items() if kind.seen_by == "tags"]
SEEN_BY_CONTENT = [name for name, kind in KINDS.items() if kind.seen_by == "content"]
SAMPLED = [name for name, kind in KINDS.items() if kind.is_sampled]
ONLY_THE_GUARD_IS_MISLED: set[FaultName] = {"tag_update_lost", "tag_table_late", "wrong_page_count"}
"""What runs is right, and the tag table or the count says that it is not."""


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
    assert found.probability == 1
    assert 0 < found.effective == found.detected <= found.injected
    assert (found.wrong_rows_run, found.leaked_tokens, found.false_alarms, found.delay_steps) == (0, 0, 0, 0)


@pytest.mark.parametrize("kind", SEEN_BY_CONTENT)
def test_tags_cannot_see_what_lies_in_a_page(kind: FaultName) -> None:
    report = drill(TAGS, kind)
    found = only(report)
    assert found.probability == 0
    assert found.effective > 0
    assert found.detected == 0
    assert found.leaked_tokens > 0
    assert report.passed  # nobody claims that they are seen
    assert "not seen by tags" in _text(report)


@pytest.mark.parametrize("kind", SEEN_BY_CONTENT)
def test_contents_are_seen_when_all_are_compared(kind: FaultName) -> None:
    found = only(drill(ALL, kind))
    assert found.probability == 1
    assert 0 < found.effective == found.detected
    assert (found.wrong_rows_run, found.leaked_tokens, found.false_alarms, found.delay_steps) == (0, 0, 0, 0)


@pytest.mark.parametrize("kind", SAMPLED)
def test_contents_are_seen_now_and_then_when_some_are_compared(kind: FaultName) -> None:
    report = drill(SOME, kind, steps=1500)
    found = only(report)
    assert report.passed
    assert found.probability == 0.3
    assert found.false_alarms == 0
    assert found.delay_steps > 0
    # The chance is 0.3 for a full page, and 1 for a page that is still being filled.
    assert found.effective > 40
    assert 0.15 < found.detected / found.effective < 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_looks_and_tokens_leak(kind: FaultName) -> None:
    """The faults are real: this is what they do to whoever does not check."""
    found = only(drill(OFF, kind))
    assert found.probability == 0
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
    assert report.preemptions > 0
    assert report.cached_tokens > 0


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
    right = IntegrityCheck.bad_rows

    def nervous(self: IntegrityCheck, prepared: object) -> list[Mismatch]:
        return right(self, prepared) or ([Mismatch(0, 0, "tag")] if self.checks == 40 else [])  # type: ignore[arg-type]

    monkeypatch.setattr(IntegrityCheck, "bad_rows", nervous)
    report = drill(TAGS, None)
    assert not report.passed
    assert only(report).false_alarms > 0
    assert "--fault none" in drill_verdict(report)


def test_a_guard_that_lets_prompts_pass_fails_the_drill_though_no_token_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that samples nothing in this step still writes into pages."""
    right = IntegrityCheck.bad_rows

    def lax(self: IntegrityCheck, prepared: Any) -> list[Mismatch]:
        sampling = {row for row, (sequence, count) in enumerate(prepared.batch.runs) if count == sequence.remaining}
        return [mismatch for mismatch in right(self, prepared) if mismatch.row in sampling]

    monkeypatch.setattr(IntegrityCheck, "bad_rows", lax)
    report = drill(TAGS, "granted_twice", steps=1500)
    assert not report.passed
    assert only(report).wrong_rows_run > 0


def test_a_mistake_of_the_allocator_itself_is_put_down_to_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    right, calls = PagePool.release, count()

    def slips(self: PagePool, grants: Iterable[Grant]) -> list[Grant]:
        if next(calls) % 15 == 14 and (held := [page for page in range(self.pages) if self._holders[page] == 1]):
            right(self, [Grant(held[0], self.tracker.issued(held[0]))])
        return right(self, grants)

    monkeypatch.setattr(PagePool, "release", slips)
    report = drill(TAGS, "tag_update_lost")
    assert not report.passed
    assert only(report).unexplained > 0
    assert "rows wrong by no fault" in report.failures[0].why


def test_a_sample_that_finds_nothing_fails_the_drill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContentCheck, "bad_cells", lambda self, prepared: [])
    report = drill(SOME, "late_write", steps=1500)
    assert only(report).detected == 0
    assert not report.passed
    assert report.failures[0].seed == 11


def test_a_sample_is_judged_when_enough_were_tried() -> None:
    few = KindReport(fault="late_write", guard="tags+content", guard_sample=0.02, probability=0.02, effective=100)
    assert (few.passed, few.is_judged) == (True, False)
    many = KindReport(fault="late_write", guard="tags+content", guard_sample=0.02, probability=0.02, effective=700)
    assert (many.passed, many.is_judged) == (False, True)
    most = KindReport(
        fault="late_write", guard="tags+content", guard_sample=0.5, probability=0.5, effective=5000, detected=2500
    )
    assert (most.passed, most.is_judged) == (True, True)


def test_an_engine_that_breaks_down_or_gets_stuck_is_a_failure_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(self: Scheduler, batch: object) -> None:
        raise ZeroDivisionError("the scheduler")

    with monkeypatch.context() as patched:
        patched.setattr(Scheduler, "computed", breaks)
        report = drill(TAGS, None, steps=1)
    assert not report.passed
    assert report.failures[0].why.endswith("step 1: ZeroDivisionError('the scheduler')")
    assert "--seed 11 --steps 1 --fault none" in drill_verdict(report)
    right, calls = Scheduler.schedule, count()
    monkeypatch.setattr(Scheduler, "schedule", lambda self: right(self) if next(calls) < 40 else (make_batch([]), []))
    assert "answers were still under way" in drill(TAGS, None, steps=1).failures[0].why


def test_one_seed_decides_everything_whatever_the_process(session_home: Home) -> None:
    """Hashes of strings and bytes differ between processes; nothing may depend on them."""
    command = ["drill", "--home", str(session_home.path), "--seed", "5", "--steps", "300", "--json"]
    command += ["--guard", "tags+content", "--fault", "none", "--fault", "reference_count", "--fault", "late_write"]
    reports = [_run(*command, hash_seed=hash_seed) for hash_seed in ("1", "2")]
    assert reports[0] == reports[1]
    assert [kind["steps"] >= 300 for kind in reports[0]["kinds"]] == [True] * 3


def test_another_seed_is_another_drill() -> None:
    assert drill(TAGS, "freed_early", seed=1).kinds != drill(TAGS, "freed_early", seed=2).kinds


def test_where_contents_are_sampled_only_what_they_can_see_is_played() -> None:
    assert [kind for _, kind in cases_of([SOME], [None, *KINDS])] == SAMPLED
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
