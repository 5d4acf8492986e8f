"""Lists of jobs, one job, its log, and why a job waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.errors import NotFoundError
from roundhouse.console.jobs import NewJob, Worklist, enqueue
from roundhouse.console.jobs.liveness import GONE_AFTER
from roundhouse.console.jobs.queries import count_by_state, job_detail, list_jobs, log_lines
from roundhouse.console.jobs.records import JobFilter
from roundhouse.console.jobs.waiting import why_waiting
from roundhouse.console.models import Job, Worker
from roundhouse.console.paging import PageOf


def ask(database: Database, **keys: Any) -> int:
    with database.writing() as session:
        return enqueue(session, NewJob(**{"kind": "build", "subject": "m", **keys})).id


def a_worker(database: Database, name: str, host: str = "here", targets: tuple[str, ...] = ("torch",), **keys: Any) -> Worker:
    now = utc_now()
    worker = Worker(
        id=name, host=host, pid=1, hardware={}, versions={}, targets=list(targets), disk_free=1, disk_total=2, started_at=now,
        **{"home": "/h", "seen_at": now, **keys},
    )  # fmt: skip
    with database.writing() as session:
        session.add(worker)
    return worker


def listed(database: Database, page: PageOf | None = None, **keys: Any) -> list[int]:
    with database.reading() as session:
        return [job.id for job in list_jobs(session, JobFilter(**keys), page or PageOf()).items]


def test_lists_are_filtered_and_come_in_pages(database: Database) -> None:
    one = ask(database, subject="Llama 100%", requested_by="ann")
    two = ask(database, subject="qwen", requested_by="Bob", engine_id="e")
    three = ask(database, kind="verify", subject="llama_two", engine_id="e")
    claim = Worklist(database).claim(a_worker(database, "w"))
    assert claim is not None
    assert listed(database) == [three, two, one]
    assert listed(database, kinds=("build",)) == [two, one]
    assert listed(database, states=("running", "failed")) == [one]
    assert listed(database, engine_id="e") == [three, two]
    assert listed(database, text="LLAMA") == [three, one]
    assert listed(database, text="%") == [one]
    assert listed(database, text="_") == [three]
    assert listed(database, text="bob") == [two]
    assert listed(database, text=str(two)) == [two]
    assert listed(database, text="9" * 30) == []
    with database.reading() as session:
        page = list_jobs(session, JobFilter(), PageOf(number=2, size=2))
        assert ([job.id for job in page.items], page.total, page.pages) == ([one], 3, 2)
        assert count_by_state(session) == {"running": 1, "queued": 2}
        assert count_by_state(session, ["verify"]) == {"queued": 1}


def test_a_job_is_shown_with_its_latest_attempt(database: Database) -> None:
    job = ask(database, most_attempts=2, payload={"a": 1})
    worker, later = a_worker(database, "w"), [utc_now()]
    worklist = Worklist(database, lambda: later[0])
    for attempt in (1, 2):
        claim = worklist.claim(worker)
        assert claim is not None
        for name in ("import", "load")[:attempt]:
            worklist.begin_stage(claim, name, f"{name} {attempt}")
        worklist.log(claim, 1, [f"line {number}" for number in range(attempt * 3)])
        if attempt == 1:
            later[0] += timedelta(minutes=1)
            assert worklist.give_up_abandoned() == [job]
    with database.reading() as session:
        found = job_detail(session, job)
        assert [(stage.name, stage.what, stage.ended_at is None) for stage in found.stages] == [
            ("import", "import 2", False),
            ("load", "load 2", True),
        ]
        assert found.stage == found.stages[-1] == list_jobs(session, JobFilter(), PageOf()).items[0].stage
        assert [(each.number, each.lines, each.began_at is not None) for each in found.attempts] == [(1, 3, True), (2, 6, True)]
        assert (found.worker_host, found.payload, found.is_live) == ("here", {"a": 1}, True)
        lines = log_lines(session, job, 2, after=2, most=3)
        assert [(line.number, line.text) for line in lines] == [(3, "line 2"), (4, "line 3"), (5, "line 4")]
        with pytest.raises(NotFoundError, match="no job 999"):
            job_detail(session, 999)


def test_the_number_of_statements_does_not_depend_on_the_number_of_jobs(database: Database) -> None:
    said: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    counts = []
    for jobs in (1, 20):
        for _ in range(jobs):
            ask(database)
        said.clear()
        listed(database)
        counts.append(len([each for each in said if each.startswith("SELECT")]))
    assert counts == [3, 3]


def waits(database: Database, job: int) -> str | None:
    with database.reading() as session:
        return why_waiting(session, session.get_one(Job, job))


def test_why_a_job_waits(database: Database) -> None:
    plain, tensorrt = ask(database), ask(database, target="tensorrt")
    there, at_home = ask(database, host="there", target="torch"), ask(database, host="here", home="/other")
    assert waits(database, plain) == "No worker is alive: `roundhouse worker` starts one."
    a_worker(database, "ended", ended_at=utc_now())
    a_worker(database, "gone", host="there", seen_at=utc_now() - GONE_AFTER - timedelta(seconds=1))
    assert str(waits(database, plain)).startswith("No worker is alive")
    a_worker(database, "alive")
    assert waits(database, plain) is None
    assert waits(database, tensorrt) == "No worker with target tensorrt is alive."
    assert str(waits(database, there)).startswith(
        "No worker with target torch of host there is alive; one was last heard of at"
    )
    assert waits(database, ask(database, host="mars")) == "Host mars never had a worker: it can only be done there."
    assert waits(database, at_home) == "No worker with the home /other is alive on host here."
    assert waits(database, ask(database, home="/h")) is None
    with database.writing() as session:
        session.get_one(Job, tensorrt).state = "cancelled"
    assert waits(database, tensorrt) is None


def test_a_job_waits_behind_those_that_keep_every_able_worker_busy(database: Database) -> None:
    worklist, one, two = Worklist(database), a_worker(database, "one"), a_worker(database, "two")
    a_worker(database, "unable", targets=())
    first, second, third = (ask(database, subject=name, target="torch") for name in ("a", "b", "c"))
    claim = worklist.claim(one)
    assert waits(database, third) is None, "another worker is free"
    worklist.claim(two)
    assert waits(database, third) == f"It waits behind job {first} (build a)."
    assert waits(database, ask(database, kind="undeploy")) is None, "that is another lane"
    assert claim is not None
    worklist.end(claim, "succeeded")
    assert (second, waits(database, third)) == (second, None)


def test_a_job_does_not_wait_behind_one_on_another_host(database: Database) -> None:
    worklist, here, there = Worklist(database), a_worker(database, "here"), a_worker(database, "there", host="there")
    ask(database, subject="elsewhere", host="there")
    worklist.claim(there)
    first, second = (ask(database, subject=name, host="here") for name in ("a", "b"))
    assert waits(database, second) is None, "its own host has nothing to do"
    worklist.claim(here)
    assert waits(database, second) == f"It waits behind job {first} (build a)."


def test_an_unload_waits_for_the_start_of_its_deployment_and_for_no_other(database: Database) -> None:
    worklist, worker = Worklist(database), a_worker(database, "w")
    start = ask(database, kind="deploy", deployment_id="a")
    claim = worklist.claim(worker, ["deploy"])
    its_end, another = ask(database, kind="undeploy", deployment_id="a"), ask(database, kind="undeploy", deployment_id="b")
    assert waits(database, its_end) == f"It waits until job {start} has ended, which is at the same deployment (deploy)."
    taken = worklist.claim(worker, ["undeploy"])
    assert taken is not None
    assert taken.job_id == another
    assert claim is not None
    worklist.end(claim, "cancelled")
    taken = worklist.claim(worker, ["undeploy"])
    assert taken is not None
    assert taken.job_id == its_end


def test_a_worker_takes_only_the_kinds_that_it_asks_for(database: Database) -> None:
    ask(database)
    deploy = ask(database, kind="deploy")
    claim = Worklist(database).claim(a_worker(database, "w"), ["deploy", "undeploy"])
    assert claim is not None
    assert claim.job_id == deploy
    assert Worklist(database).claim(a_worker(database, "v"), ["verify"]) is None


def test_what_a_worker_gives_back_is_no_longer_its_own(database: Database) -> None:
    job = ask(database)
    worklist, worker = Worklist(database, lease=timedelta(seconds=1)), a_worker(database, "w")
    for _ in range(3):
        claim = worklist.claim(worker)
        assert claim is not None
        worklist.give_back(claim)
        with database.reading() as session:
            assert session.get_one(Job, job).state == "queued"
        with pytest.raises(Exception, match="is no longer this worker's"):
            worklist.renew(claim)


def test_lines_that_are_written_twice_are_there_once(database: Database) -> None:
    """A transaction may have been committed although its connection broke before it said so."""
    job = ask(database)
    worklist = Worklist(database)
    claim = worklist.claim(a_worker(database, "w"))
    assert claim is not None
    for _ in range(2):
        worklist.log(claim, 1, ["one", "two"])
    worklist.begin_stage(claim, "load", "…")
    worklist.begin_stage(claim, "load", "again")
    with database.reading() as session:
        assert [line.text for line in log_lines(session, job, 1)] == ["one", "two"]
        assert [stage.what for stage in job_detail(session, job).stages] == ["again"]
