"""What is forgotten, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from deployed import add_deployment, add_samples
from sqlalchemy import func, select, text, update

from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.access.logins import Logins
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.housekeeping import Housekeeping
from roundhouse.console.models import DeploymentSample, Job, LoginSession, LogLine, Setting, Worker
from roundhouse.console.settings_table import read_settings


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def add_jobs(database: Database, count: int, ended_days_ago: float | None) -> None:
    now = utc_now()
    ended = None if ended_days_ago is None else now - timedelta(days=ended_days_ago)
    state = "queued" if ended is None else "succeeded"
    with database.writing() as session:
        for _ in range(count):
            job = Job(kind="build", state=state, subject="x", payload={}, requested_by="ann", created_at=now, ended_at=ended)
            session.add(job)
            session.flush()
            session.add(LogLine(job_id=job.id, attempt=1, number=1, at=now, text="a line"))


def lines(database: Database) -> int:
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(LogLine)) or 0


def test_logs_go_when_they_are_as_old_as_the_settings_say(database: Database) -> None:
    clock = Clock()
    keeping = Housekeeping(database, clock)
    add_jobs(database, 120, ended_days_ago=31)
    add_jobs(database, 1, ended_days_ago=91)
    add_jobs(database, 3, ended_days_ago=29)
    add_jobs(database, 2, ended_days_ago=None)
    keeping.when_due()
    assert lines(database) == 125, "nothing was set, so what is older than 90 days goes"
    with database.writing() as session:
        session.add(Setting(key="job_log_days", value=30, changed_at=utc_now(), changed_by="ann"))
    keeping.when_due()
    assert lines(database) == 125, "it is not due"
    clock.now += 3600
    keeping.when_due()
    assert lines(database) == 75, "a part at a time"
    for _ in range(5):
        keeping.when_due()
    assert lines(database) == 5
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Job)) == 126, "jobs stay"


def test_long_logs_go_a_part_at_a_time(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundhouse.console.housekeeping._LINES_AT_ONCE", 100)
    add_jobs(database, 2, ended_days_ago=91)
    add_jobs(database, 1, ended_days_ago=1)
    now = utc_now()
    with database.writing() as session:
        for job, attempt in ((1, 1), (1, 2), (2, 1), (3, 1)):
            session.add_all(
                LogLine(job_id=job, attempt=attempt, number=number, at=now, text="a line") for number in range(2, 82)
            )
    keeping = Housekeeping(database, Clock())
    left = [lines(database)]
    for _ in range(5):
        keeping.when_due()
        left.append(lines(database))
    assert left == [323, 223, 123, 81, 81, 81]
    with database.reading() as session:
        assert set(session.scalars(select(LogLine.job_id))) == {3}


def test_logins_that_are_over_go(database: Database) -> None:
    with database.writing() as session:
        user = add_account(session, "ann", hash_password("correct horse battery"), "viewer")
        Logins().begin(session, user, address="", browser="")
        Logins(lambda: utc_now() - timedelta(days=3)).begin(session, user, address="", browser="")
    Housekeeping(database, Clock()).when_due()
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(LoginSession)) == 1


def test_secrets_of_jobs_that_ended_under_older_versions_go(database: Database) -> None:
    """A job that ends forgets its own; those of before did not."""
    states = ("queued", "running", "succeeded", "failed", "cancelled", "interrupted")
    with database.writing() as session:
        for state in states:
            for sealed in ("very secret", None):
                session.add(
                    Job(kind="benchmark", state=state, subject="x", payload={}, requested_by="ann", created_at=utc_now(),
                        sealed=sealed, lease_until=utc_now() if state == "running" else None,
                        ended_at=None if state in ("queued", "running") else utc_now())
                )  # fmt: skip
    Housekeeping(database, Clock()).when_due()
    with database.reading() as session:
        found = {(job.state, job.sealed) for job in session.scalars(select(Job))}
    live = {(state, sealed) for state in states[:2] for sealed in ("very secret", None)}
    assert found == live | {(state, sealed) for state in states[2:] for sealed in ("", None)}


def test_whatever_goes_wrong_the_console_goes_on(database: Database) -> None:
    clock = Clock()
    keeping = Housekeeping(database, clock)
    with database.writing() as session:
        session.execute(text("DROP TABLE job_log"))
    keeping.when_due()
    with database.writing() as session:
        session.add(Setting(key="job_log_days", value="no number", changed_at=utc_now(), changed_by="ann"))
    with database.reading() as session:
        assert read_settings(session).job_log_days == 90


def test_old_samples_and_workers_without_jobs_go(database: Database) -> None:
    now = utc_now()
    with database.writing() as session:
        add_deployment(session)
        add_samples(session, last=now - timedelta(minutes=61), count=3)
        add_samples(session, count=2)
        for name, days in (("new", 29), ("old", 31), ("old with a job", 31)):
            seen = now - timedelta(days=days)
            session.add(
                Worker(id=name, host="h", home="/h", pid=1, versions={}, targets=[], hardware={}, disk_free=1, disk_total=2,
                       started_at=seen, seen_at=seen)
            )  # fmt: skip
    add_jobs(database, 1, ended_days_ago=31)
    with database.writing() as session:
        session.execute(update(Job).values(worker_id="old with a job"))
    Housekeeping(database, Clock()).when_due()
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(DeploymentSample)) == 2
        assert set(session.scalars(select(Worker.id).where(Worker.host == "h"))) == {"new", "old with a job"}
