"""A console in which everything has happened once: rows of every kind, for tests that visit all of the API."""

from __future__ import annotations

import gzip
from dataclasses import dataclass

from built import ID, add_built
from deployed import add_deployment, add_lines, add_samples
from measured import add_benchmarks, add_evaluations

from roundhouse.build.home import Home
from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.access.actor import SCOPES, Actor, Scope
from roundhouse.console.access.audit import audit
from roundhouse.console.access.logins import Logins
from roundhouse.console.access.tokens import add_token
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.jobs import NewJob, Worklist, enqueue
from roundhouse.console.models import IntegrityRecord, Role, Worker

__all__ = ["Populated", "add_worker", "populate", "token_of"]

PASSWORD = "correct horse battery"
HOST, HOME = "one", "/srv/roundhouse"


@dataclass(frozen=True)
class Populated:
    """What can be named."""

    token: str
    """Of an admin, with every scope."""
    known: dict[str, str | int]
    """Values of path parameters that name something."""


def token_of(database: Database, role: Role = "admin", scopes: tuple[Scope, ...] = SCOPES) -> str:
    """A token of an account with this role, which is made where it is missing."""
    with database.writing() as session:
        user = add_account(session, f"{role}-{utc_now():%H%M%S%f}", hash_password(PASSWORD), role)
        return add_token(session, user.id, "tests", scopes, None)[1]


def add_worker(database: Database, host: str = HOST, home: str = HOME) -> Worker:
    """A worker that is alive, and does nothing by itself."""
    now = utc_now()
    with database.writing() as session:
        worker = Worker(id=f"worker-{host}", host=host, pid=1, home=home, hardware={}, versions={}, targets=["torch"],
                        disk_free=2**40, disk_total=2**41, started_at=now, seen_at=now)  # fmt: skip
        session.add(worker)
        session.flush()
        session.expunge(worker)
    return worker


def populate(database: Database, home: Home) -> Populated:
    """Fill a database."""
    token = token_of(database)
    worker = add_worker(database)
    with database.writing() as session:
        victim = add_account(session, "victim", hash_password(PASSWORD), "viewer")
        Logins().begin(session, victim, address="10.0.0.1", browser="a browser")
        of_victim = add_token(session, victim.id, "of the victim", ("read",), None)[0].id
        add_built(session)
        add_deployment(
            session,
            "aaaaaaaa",
            engine_id=ID,
            key="secret",
            key_home=home,
            host=HOST,
            home=HOME,
            openai="http://127.0.0.1:9000/v1",
        )
        add_deployment(session, "bbbbbbbb", engine_id=ID, name="ended", state="stopped", host=HOST, home=HOME)
        add_samples(session)
        add_lines(session, "aaaaaaaa", "ready", "steady")
        event = IntegrityRecord(
            at=utc_now(), host=HOST, home=HOME, engine_id=ID, deployment_id="aaaaaaaa", event="e1", kind="tag", request_id="r1",
            answer=0, step=3, column=1, page=7, expected_tag=4, found_tag=5, last_holders=[],
        )  # fmt: skip
        session.add(event)
        session.flush()
        entry = Actor(victim.id, "victim", "viewer", "browser", "10.0.0.1")
        audit(session, entry, "job.cancel", "job", "1")
        log = ("items.jsonl", gzip.compress(b"{}\n"))
        (benchmark,) = add_benchmarks(session, host=HOST, home=HOME, samples=3, files=[log])
        (evaluation,) = add_evaluations(session, host=HOST, home=HOME)
        drill = enqueue(session, NewJob("drill", "no model", {"seed": 1}, "victim")).id
        known = {"event_id": event.id, "token_id": of_victim}
    job = _failed_build(database, worker)
    return Populated(
        token,
        {
            "job_id": job,
            "drill_id": drill,
            "engine_id": ID,
            "deployment_id": "aaaaaaaa",
            "worker_id": worker.id,
            "name": "victim",
            "entry_id": 1,
            "benchmark_id": benchmark,
            "evaluation_id": evaluation,
            "file_name": log[0],
            "handle": "0123456789abcdef",
            **known,
        },
    )


def _failed_build(database: Database, worker: Worker) -> int:
    with database.writing() as session:
        job = enqueue(session, NewJob("build", "tiny", {"recipe": {"model": "demo:smollm2"}}, "victim", target="torch")).id
    worklist = Worklist(database)
    claim = worklist.claim(worker, ["build"])
    assert claim is not None
    worklist.begin_stage(claim, "import", "demo:smollm2")
    worklist.log(claim, 1, ["import: demo:smollm2", "it went wrong"])
    worklist.end(claim, "failed", error="it went wrong", hint="Do otherwise.")
    return job
