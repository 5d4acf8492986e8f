"""Every route, visited as everybody. A route that is added is visited too; what it asks for stands in its own dependency."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from all_routes import named, routes_of
from everybody import EVERYBODY, Somebody, visit
from fastapi import FastAPI
from populated import populate
from sqlalchemy import URL

from roundhouse.build.home import Home
from roundhouse.console.access.actor import Scope
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.jobs import NewJob, enqueue
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app

OPEN = {"/healthz", "/livez", "/readyz", "/login", "/setup"}
"""What nobody must log in for."""
BY_KIND = {
    "/builds/{job_id}/cancel",
    "/builds/{job_id}/retry",
    "/api/v1/jobs/{job_id}/cancel",
    "/api/v1/jobs/{job_id}/retry",
}
"""Where the job decides what it takes; each is asked for one of each kind. Nothing else may have several scopes."""
JOBS: tuple[tuple[str, Scope], ...] = (("job_id", "build"), ("drill_id", "build"), ("deploying_id", "deploy"))
ONES_OWN = re.compile(r"(/api/v1)?/account/(tokens/{token_id}|logins/{handle})")
"""What is there is somebody else's: it must look as if it were not."""


@dataclass(frozen=True)
class Visited:
    method: str
    path: str
    sample: str
    """With the id of something that is there."""
    scope: Scope
    in_person: bool


@dataclass(frozen=True)
class Console:
    """An application, and what it finds: the same for each of its visitors, whatever the one before has done."""

    app: FastAPI
    file: Path
    known: dict[str, str | int]


def guarded_routes(console: Console) -> Iterator[Visited]:
    order: tuple[Scope, ...] = ("read", "build", "deploy", "admin")
    for method, path, guards in routes_of(console.app):
        if path in OPEN:
            continue
        in_person = any(guard.in_person for guard in guards)
        for id_name, scope in JOBS if path in BY_KIND else ():
            yield Visited(method, path, named(path, console.known | {"job_id": console.known[id_name]}), scope, in_person)
        if path not in BY_KIND:
            # A route with several guards has to satisfy all; none of ours mixes build with deploy.
            scope = max((scope for guard in guards for scope in guard.scopes), key=order.index)
            yield Visited(method, path, named(path, console.known), scope, in_person)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory, migrated: dict[str, URL]) -> Console:
    """Who may do what does not depend on where it is kept: on SQLite."""
    folder = tmp_path_factory.mktemp("matrix")
    home, file = Home(folder / "home"), folder / "populated.sqlite3"
    shutil.copy(str(migrated["sqlite"].database), file)
    database = Database(database_url(f"sqlite:///{file}", home))
    there = populate(database, home)
    with database.writing() as session:
        deploying = enqueue(session, NewJob("deploy", "m", {"deployment_id": "aaaaaaaa"}, "victim")).id
        replica = session.connection().exec_driver_sql("SELECT min(id) FROM engine_replica").scalar_one()
    database.close()
    app = create_app(ConsoleSettings(home=home), database)
    return Console(app, file, there.known | {"deploying_id": deploying, "replica_id": replica})


@pytest.fixture
def database(console: Console, tmp_path: Path) -> Iterator[Database]:
    """What the console finds, for one visitor."""
    shutil.copy(console.file, tmp_path / "its.sqlite3")
    database = Database(database_url(f"sqlite:///{tmp_path / 'its.sqlite3'}", Home(tmp_path)))
    console.app.state.roundhouse = dataclasses.replace(console.app.state.roundhouse, database=database)
    yield database
    database.close()


def test_every_route_says_what_it_needs_or_is_one_of_the_open_ones(console: Console) -> None:
    routes = list(routes_of(console.app))
    silent = {(method, path) for method, path, guards in routes if not guards and path not in OPEN}
    assert silent == set(), "every route needs Viewer, Builder, Deployer, Admin or needs(scope): see console/web/who.py"
    assert {path for _, path, guards in routes if any(len(guard.scopes) > 1 for guard in guards)} == BY_KIND
    changing = [(method, path) for method, path, _ in routes if method in ("HEAD", "OPTIONS", "TRACE")]
    assert changing == []
    assert {path for _, path, _ in routes} >= OPEN | {"/", "/users", "/metrics", "/api/v1/users/{name}"}


@pytest.mark.parametrize("somebody", EVERYBODY, ids=lambda each: each.name)
def test_everybody_gets_through_where_they_may_and_nowhere_else(
    console: Console, database: Database, somebody: Somebody
) -> None:
    assert asyncio.run(what_is_wrong(console, database, somebody)) == []


async def what_is_wrong(console: Console, database: Database, somebody: Somebody) -> list[str]:
    wrong, headers_now = [], somebody.arrive(database)
    for route in guarded_routes(console):
        status, headers = await visit(console.app, route.method, route.sample, headers_now())
        # Who logs out is sent to the login too, but told so.
        to_login = status == 303 and headers["location"].startswith("/login") and "set-cookie" not in headers
        let_through = status not in (401, 403) and not to_login
        known = somebody.role is not None and not somebody.worthless
        refused_rightly = status == 403 if known else status == 401 or to_login
        may = somebody.may(route.scope, in_person=route.in_person)
        right = (status == 404 if ONES_OWN.match(route.path) else let_through and status < 500) if may else refused_rightly
        if not right:
            wrong.append(f"{route.method} {route.sample} (needs {route.scope}): {status} {headers.get('location', '')}")
    return wrong
