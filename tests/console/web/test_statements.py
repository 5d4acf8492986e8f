"""No page and no answer of the API takes more statements because there is more to tell."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from all_routes import named, routes_of
from built import ID
from counting import count_queries
from deployed import add_deployment, add_lines, add_replica
from everybody import visit
from fastapi import FastAPI
from measured import add_benchmarks, add_evaluations
from populated import HOME, HOST, Populated, populate
from sqlalchemy import select

from roundhouse.build.home import Home
from roundhouse.console.access.actor import Actor
from roundhouse.console.access.audit import audit
from roundhouse.console.access.logins import Logins
from roundhouse.console.access.tokens import add_token
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.jobs import NewJob, Worklist, enqueue
from roundhouse.console.models import IntegrityRecord, User, Worker
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app

MANY = 12
STREAMS = {
    "/builds/{job_id}/log/stream",
    "/deployments/{deployment_id}/live",
    "/deployments/{deployment_id}/log/live",
    "/benchmarks/{benchmark_id}/live",
}
pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def statements(app: FastAPI, database: Database, there: Populated, cookie: str) -> dict[str, int]:
    """How many each address takes that can be read."""

    async def count() -> dict[str, int]:
        counted = {}
        for method, path, _ in routes_of(app):
            if method == "GET" and path not in STREAMS:
                of_it = {"job_id": there.known["drill_id"]} if "/drills/" in path else {}
                with count_queries(database) as sent:
                    status, _ = await visit(
                        app, "GET", named(path, there.known | of_it), {"cookie": f"roundhouse_login={cookie}"}
                    )
                assert status in (200, 303, 403, 404, 409), path
                counted[path] = len(sent)
        return counted

    return asyncio.run(count())


def grow(database: Database) -> None:
    """More of everything."""
    some = Actor(1, "ann", "admin", "browser", "x")
    with database.writing() as session:
        users = session.scalars(select(User)).all()
        worker = session.scalars(select(Worker)).first()
        assert worker is not None
        for number in range(MANY):
            for user in users:
                add_token(session, user.id, f"t{number}", ("read",), None)
                Logins().begin(session, user, address="x", browser="y")
            add_replica(session, ID, f"host-{number}")
            add_deployment(session, f"more{number:04}", engine_id=ID, name=f"m{number}", host=HOST, home=HOME)
            add_deployment(session, f"old{number:05}", engine_id=ID, name=f"o{number}", state="stopped", host=HOST, home=HOME)
            add_lines(session, f"more{number:04}", "a", "b")
            enqueue(session, NewJob("drill", "no model", {"seed": number}, "victim"))
            enqueue(session, NewJob("build", f"b{number}", {"recipe": {"model": "demo:smollm2"}}, "victim", target="torch"))
            session.add(
                IntegrityRecord(
                    at=utc_now(), host=HOST, home=HOME, engine_id=ID, deployment_id="aaaaaaaa", event=f"more{number}",
                    kind="tag", request_id="r", answer=0, step=3, column=1, page=7, expected_tag=4, found_tag=5,
                    last_holders=[],
                )
            )  # fmt: skip
            audit(session, some, "drill", "job", "1")
        add_benchmarks(session, MANY, first=1, host=HOST, home=HOME, samples=2)
        add_evaluations(session, MANY, first=1, host=HOST, home=HOME)
    worklist = Worklist(database)
    for _ in range(MANY):
        claim = worklist.claim(worker)
        assert claim is not None
        worklist.begin_stage(claim, "import", "x")
        worklist.log(claim, 1, ["a"])
        worklist.end(claim, "failed", error="x")


def test_nothing_takes_more_statements_for_more_rows(database: Database, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    there = populate(database, home)
    with database.writing() as session:
        admin = session.scalars(select(User).where(User.role == "admin")).one()
        cookie = Logins().begin(session, admin, address="", browser="")
    app = create_app(ConsoleSettings(home=home), database)
    few = statements(app, database, there, cookie)
    grow(database)
    many = statements(app, database, there, cookie)
    assert {path: (few[path], many[path]) for path in few if many[path] > few[path]} == {}
    assert max(many.values()) <= 40
    assert len(few) > 60
