"""What becomes of a job whose child succeeds, fails, dies, or must end early."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy.exc import TimeoutError as NoConnectionError

from roundhouse.console.database.base import utc_now
from roundhouse.console.jobs import Worklist
from roundhouse.console.worker.output import MOST_OF_A_LINE, Output
from roundhouse.console.worker.wire import Ended, Progress, StageBegan, as_line, read_line

from .conftest import Bench, eventually

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def test_a_job_succeeds_with_stages_and_a_log(bench: Bench) -> None:
    bench.start()
    job = bench.ended(bench.do("stages", say="well"))
    assert (job.state, job.result, job.error) == ("succeeded", {"said": "well"}, None)
    assert [(stage.name, stage.what, stage.ended_at is not None) for stage in job.stages] == [
        ("first", "the first part", True),
        ("second", "the second part", True),
    ]
    assert bench.log(job.id) == ["half of it"]


@on_sqlite
def test_failures_say_why(bench: Bench) -> None:
    bench.start()
    jobs = {name: bench.do(name) for name in ("fail", "fail_badly", "fail_with_result", "die")}
    ended = {name: bench.ended(job) for name, job in jobs.items()}
    assert {job.state for job in ended.values()} == {"failed"}
    assert (ended["fail"].error, ended["fail"].hint) == ("there is no such thing", "Take another.")
    assert bench.log(jobs["fail"]) == []  # a user's mistake has no traceback
    assert ended["fail_badly"].error == "the worker's code failed: KeyError: 'somewhere', see the log"
    assert bench.log(jobs["fail_badly"])[0] == "Traceback (most recent call last):"
    assert (ended["fail_with_result"].error, ended["fail_with_result"].result) == ("it came out badly", {"score": None})
    assert (ended["die"].error, "memory" in str(ended["die"].hint)) == ("its process was killed", True)


def test_a_log_is_numbered_clean_and_capped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Output.__init__, "__defaults__", (300,))
    bench.start()
    job = bench.ended(bench.do("talk", lines=1000))
    assert job.state == "succeeded"
    assert [stage.name for stage in job.stages] == ["talking"]
    log = bench.log(job.id)
    assert len(log) == 300
    assert log[:3] == ["no end of line", "to stderr and back", " is no event"]
    assert log[3] == "x" * MOST_OF_A_LINE + " … (cut)"
    assert (log[4], log[298]) == ("line 0", "line 294")
    assert log[299] == "The rest of the log is not kept: it has more than 299 lines."


@on_sqlite
@pytest.mark.parametrize("act", ["holding", "renew", "end"])
def test_a_database_that_is_only_busy_fails_no_job(bench: Bench, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    tries: list[None] = []
    really = getattr(Worklist, act)

    def busy_at_first(*given: Any, **named: Any) -> Any:
        tries.append(None)
        if len(tries) < 3:
            raise NoConnectionError("QueuePool limit of size 20 overflow 25 reached, connection timed out")
        return really(*given, **named)

    monkeypatch.setattr(Worklist, act, busy_at_first)
    bench.start()
    job = bench.ended(bench.do("stages", say="well"))
    assert (job.state, job.result, len(tries) > 2) == ("succeeded", {"said": "well"}, True)


@on_sqlite
@pytest.mark.parametrize("deed", ["wait", "stubborn", "finish_anyway"])
def test_cancelling_ends_the_child_and_all_it_started(bench: Bench, deed: str) -> None:
    bench.start(grace_s=0.5 if deed == "stubborn" else 60.0, lease_s=3.0)
    job = bench.do(deed)
    eventually(lambda: bench.look(job).stages)
    assert bench.children()
    bench.cancel(job)
    ended = bench.ended(job)
    assert not bench.children()
    assert ended.stages[-1].ended_at is not None
    if deed == "finish_anyway":  # what was published before the word came stays published
        assert (ended.state, ended.result) == ("succeeded", {"finished": True})
    else:
        assert (ended.state, ended.error) == ("cancelled", None)


@on_sqlite
def test_a_deployment_does_not_wait_for_a_build(bench: Bench) -> None:
    bench.start()
    build = bench.do("wait")
    bench.at_stage(build, "waiting")
    behind = bench.do("stages", say="")
    # There is no such deployment: it fails, which it can only do when it was taken.
    assert bench.ended(bench.ask("undeploy")).state == "failed"
    assert (bench.look(build).state, bench.look(behind).state) == ("running", "queued")
    bench.cancel(build)
    assert bench.ended(behind).state == "succeeded"


@on_sqlite
def test_the_end_of_a_worker_gives_its_jobs_back(bench: Bench) -> None:
    end = bench.start()
    job = bench.do("wait")
    bench.at_stage(job, "waiting")
    end()
    assert (bench.look(job).state, bench.children()) == ("queued", [])
    end = bench.start()
    bench.at_stage(job, "waiting", attempt=2)
    bench.cancel(job)
    assert bench.ended(job).state == "cancelled"


def test_a_claim_that_lost_its_lease_publishes_nothing(bench: Bench, tmp_path: Path) -> None:
    sleeper = psutil.Process(bench.start_process(lease_s=2.0).pid)
    go, place = tmp_path / "go", tmp_path / "published"
    job = bench.ask(payload={"do": "publish", "go": str(go), "place": str(place)})
    bench.at_stage(job, "publish")
    children = bench.children()
    sleeper.suspend()  # its child goes on, and knows nothing of it
    Worklist(bench.database, lambda: utc_now() + timedelta(seconds=3)).give_up_abandoned()
    assert bench.look(job).state == "interrupted"
    go.touch()
    eventually(lambda: len(bench.children()) < len(children))
    assert not place.exists()
    sleeper.resume()
    eventually(lambda: not bench.children())
    assert (bench.look(job).state, bench.log(job)) == ("interrupted", [])


@on_sqlite
def test_a_child_whose_lease_is_lost_is_killed_at_once(bench: Bench) -> None:
    bench.start(lease_s=3.0)
    job = bench.do("stubborn")
    bench.at_stage(job, "deaf")
    Worklist(bench.database, lambda: utc_now() + timedelta(minutes=1)).give_up_abandoned()
    eventually(lambda: not bench.children())  # long before its grace is over
    assert bench.look(job).state == "interrupted"


def test_lines_with_events() -> None:
    event = StageBegan(name="one", what="a — b")
    assert read_line(as_line(event).rstrip("\n")) == (None, event)
    assert read_line("before" + as_line(Ended(result={})).strip("\n")) == ("before", Ended(result={}))
    assert read_line(as_line(StageBegan(name="one", what="a \x1eb")).rstrip("\n")) == (None, StageBegan(name="one", what="a b"))
    odd = {"half \ud800": ["of \udfff", {"nul": "a\0b", "number": float("nan")}]}
    plain = {"half \ufffd": ["of \ufffd", {"nul": "ab", "number": None}]}
    ended = read_line(as_line(Ended(result=odd, error="no\udcff file")).rstrip("\n"))
    assert ended == (None, Ended(result=plain, error="no\ufffd file"))
    assert read_line('\x1e{"event": "other"}') == ('\x1e{"event": "other"}', None)


def test_progress_is_told_by_the_latest_only() -> None:
    output = Output()
    for done in (0.1, 0.2, 0.3):
        output.take_line(as_line(Progress(name="one", done=done)).rstrip("\n"))
    assert (output.take_progress(), output.take_progress()) == (Progress(name="one", done=0.3), None)
    assert output.gather(0.0, 10) == []
