"""A job is done once, by somebody who can do it, whoever dies meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.jobs import Claim, LeaseLostError, NewJob, Worklist, cancel_job, enqueue, retry_job
from roundhouse.console.jobs.queries import job_detail
from roundhouse.console.models import Job, LogLine, Stage, Worker
from roundhouse.errors import UsageError


class Clock:
    def __init__(self) -> None:
        self.now = utc_now()

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def worklist(database: Database, clock: Clock) -> Worklist:
    return Worklist(database, clock)


def a_worker(database: Database, name: str = "w", host: str = "here", targets: tuple[str, ...] = ("torch",)) -> Worker:
    with database.writing() as session:
        now = utc_now()
        worker = Worker(
            id=name,
            host=host,
            pid=1,
            home="/h",
            hardware={},
            versions={},
            targets=list(targets),
            disk_free=1,
            disk_total=2,
            started_at=now,
            seen_at=now,
        )
        session.add(worker)
        return worker


def ask(database: Database, **keys: Any) -> int:
    with database.writing() as session:
        return enqueue(session, NewJob(**{"kind": "build", "subject": "m", **keys})).id


def look(database: Database, job_id: int) -> Job:
    with database.reading() as session:
        return session.get_one(Job, job_id)


def taken(worklist: Worklist, worker: Worker) -> Claim:
    claim = worklist.claim(worker)
    assert claim is not None
    return claim


def test_many_workers_take_each_job_once(database: Database) -> None:
    wanted = {ask(database, payload={"n": n}) for n in range(60)}
    workers = [a_worker(database, f"w{n}") for n in range(4)]
    found: list[int] = []

    def work(worker: Worker) -> None:
        mine = Database(database.url)
        worklist = Worklist(mine)
        while (claim := worklist.claim(worker)) is not None:
            found.append(claim.job_id)
            worklist.end(claim, "succeeded", result={"by": worker.id})
        mine.close()

    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(wanted)


def test_jobs_go_to_those_who_can_do_them_the_oldest_first(database: Database, worklist: Worklist) -> None:
    gpu = ask(database, target="tensorrt")
    there = ask(database, host="there")
    first, second = ask(database), ask(database, target="torch", host="here")
    here = a_worker(database)
    assert [taken(worklist, here).job_id for _ in range(2)] == [first, second]
    assert worklist.claim(here) is None
    assert taken(worklist, a_worker(database, "g", host="there", targets=("tensorrt",))).job_id == gpu
    assert taken(worklist, a_worker(database, "t", host="there", targets=())).job_id == there


def test_a_worker_that_was_thought_dead_can_do_no_more(database: Database, worklist: Worklist, clock: Clock) -> None:
    job = ask(database, most_attempts=2)
    old = taken(worklist, a_worker(database, "old"))
    worklist.log(old, 1, ["one", "two"])
    clock.now += timedelta(seconds=29)
    assert worklist.give_up_abandoned() == []
    assert worklist.renew(old) is False
    clock.now += timedelta(seconds=31)
    assert worklist.give_up_abandoned() == [job]
    new = taken(worklist, a_worker(database, "new"))
    assert (new.attempt, new.fence > old.fence) == (2, True)
    for act in (
        lambda: worklist.renew(old),
        lambda: worklist.log(old, 3, ["three"]),
        lambda: worklist.begin_stage(old, "quantize", "…"),
        lambda: worklist.end(old, "succeeded"),
        lambda: worklist.holding(old).__enter__(),
    ):
        with pytest.raises(LeaseLostError):
            act()
    worklist.log(new, 1, ["one"])
    worklist.end(new, "succeeded")
    with database.reading() as session:
        lines = session.execute(select(LogLine.attempt, LogLine.number, LogLine.text).order_by(LogLine.attempt, LogLine.number))
        assert [tuple(line) for line in lines] == [(1, 1, "one"), (1, 2, "two"), (2, 1, "one")]


def test_after_its_last_attempt_a_job_is_interrupted_and_can_be_tried_again(
    database: Database, worklist: Worklist, clock: Clock
) -> None:
    job = ask(database)
    worker = a_worker(database)
    taken(worklist, worker)
    clock.now += timedelta(minutes=1)
    worklist.give_up_abandoned()
    assert (look(database, job).state, look(database, job).error) == ("interrupted", "its worker went away")
    assert worklist.claim(worker) is None
    with database.writing() as session:
        retry_job(session.get_one(Job, job))
    assert taken(worklist, worker).attempt == 2
    with database.writing() as session, pytest.raises(UsageError, match="is running"):
        retry_job(session.get_one(Job, job))


def test_cancelling(database: Database, worklist: Worklist, clock: Clock) -> None:
    running, waiting, left = ask(database), ask(database), ask(database, most_attempts=5)
    claim = taken(worklist, a_worker(database))
    with database.writing() as session:
        for job in (running, waiting):
            cancel_job(session.get_one(Job, job))
    assert look(database, waiting).state == "cancelled"
    assert worklist.renew(claim) is True
    worklist.end(claim, "cancelled")
    assert look(database, running).state == "cancelled"
    with database.writing() as session:
        cancel_job(session.get_one(Job, running))  # has ended: nothing happens
    abandoned = taken(worklist, a_worker(database, "b"))
    assert abandoned.job_id == left
    with database.writing() as session:
        cancel_job(session.get_one(Job, left))
    clock.now += timedelta(minutes=1)
    worklist.give_up_abandoned()
    assert look(database, left).state == "cancelled"


def _is_given_up(worklist: Worklist, claim: Claim, job: int, database: Database, clock: Clock) -> None:
    clock.now += timedelta(minutes=1)
    worklist.give_up_abandoned()


def _is_cancelled_and_given_up(worklist: Worklist, claim: Claim, job: int, database: Database, clock: Clock) -> None:
    with database.writing() as session:
        cancel_job(session.get_one(Job, job))
    _is_given_up(worklist, claim, job, database, clock)


ENDS: dict[str, Callable[[Worklist, Claim, int, Database, Clock], None]] = {
    "succeeded": lambda worklist, claim, *_: worklist.end(claim, "succeeded"),
    "failed": lambda worklist, claim, *_: worklist.end(claim, "failed", error="no"),
    "cancelled": lambda worklist, claim, *_: worklist.end(claim, "cancelled"),
    "interrupted": _is_given_up,
    "cancelled, and its worker gone": _is_cancelled_and_given_up,
}


@pytest.mark.parametrize("way", ENDS)
def test_secrets_are_forgotten_however_a_job_ends(database: Database, worklist: Worklist, clock: Clock, way: str) -> None:
    job = ask(database, sealed="very secret", kind="benchmark")
    worker = a_worker(database)
    worklist.give_back(taken(worklist, worker))
    assert look(database, job).sealed == "very secret", "whoever takes it next needs it"
    ENDS[way](worklist, taken(worklist, worker), job, database, clock)
    ended = look(database, job)
    assert ended.state == way.partition(",")[0]
    assert ended.sealed == ""
    with database.writing() as session, pytest.raises(UsageError):
        retry_job(session.get_one(Job, job))
    with database.reading() as session:
        assert job_detail(session, job).lost_secrets


def test_a_job_that_is_cancelled_in_line_forgets_its_secrets_and_says_so(database: Database) -> None:
    job, other = ask(database, sealed="very secret", kind="benchmark"), ask(database)
    with database.writing() as session:
        for each in (job, other):
            cancel_job(session.get_one(Job, each))
        assert session.get_one(Job, job).sealed == ""
        assert session.get_one(Job, other).sealed is None
        with pytest.raises(UsageError, match="an API key, which was deleted when it ended"):
            retry_job(session.get_one(Job, job))
        retry_job(session.get_one(Job, other))


def test_a_second_click_does_nothing_twice(database: Database) -> None:
    first = ask(database, requested_by="ann", idempotency_key="k", payload={"n": 1})
    assert ask(database, requested_by="ann", idempotency_key="k", payload={"n": 1}) == first
    assert ask(database, requested_by="bob", idempotency_key="k", payload={"n": 1}) != first
    with pytest.raises(UsageError, match="was used for another request"):
        ask(database, requested_by="ann", idempotency_key="k", payload={"n": 2})


def test_stages_end_where_the_next_begins(database: Database, worklist: Worklist, clock: Clock) -> None:
    ask(database)
    claim = taken(worklist, a_worker(database))
    for name in ("import", "quantize"):
        worklist.begin_stage(claim, name, name)
        clock.now += timedelta(seconds=10)
    worklist.end(claim, "succeeded")
    with database.reading() as session:
        stages = session.scalars(select(Stage).order_by(Stage.position)).all()
        spans = [(stage.name, stage.position, stage.ended_at and (stage.ended_at - stage.began_at).seconds) for stage in stages]
        assert spans == [("import", 0, 10), ("quantize", 1, 10)]


def test_a_running_job_has_a_lease_and_no_other_has(database: Database, worklist: Worklist) -> None:
    job = ask(database)
    with pytest.raises(IntegrityError), database.writing() as session:
        session.get_one(Job, job).state = "running"
    claim = taken(worklist, a_worker(database))
    with pytest.raises(IntegrityError), database.writing() as session:
        session.get_one(Job, claim.job_id).state = "failed"
    assert look(database, job).state == "running"
