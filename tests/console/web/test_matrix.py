"""Every route, visited as everybody. A route that is added is visited too; what it asks for stands in its own dependency."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from everybody import EVERYBODY, Somebody, visit
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import iter_route_contexts

from roundhouse.build.home import Home
from roundhouse.console.access.actor import Scope
from roundhouse.console.database.database import Database
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app

OPEN = {"/healthz", "/readyz", "/login", "/setup"}
"""What nobody must log in for."""
SAMPLES = {"name": "some-account", "handle": "0123456789abcdef", "engine_id": "0123456789abcdef", "deployment_id": "0a1b2c3d"}
"""Values of path parameters; all others are numbers that no row has."""
NUMBER = "999999"


@dataclass(frozen=True)
class Visited:
    method: str
    path: str
    scope: Scope
    in_person: bool

    @property
    def sample(self) -> str:
        return re.sub(r"{(\w+)(?::\w+)?}", lambda found: SAMPLES.get(found[1], NUMBER), self.path)


def app_on(database: Database, tmp_path: Path) -> FastAPI:
    return create_app(ConsoleSettings(home=Home(tmp_path / "home")), database)


def declared(dependant: Dependant) -> Iterator[Any]:
    """What guards a route, found among all that it depends on."""
    for each in dependant.dependencies:
        if hasattr(each.call, "scope"):
            yield each.call
        yield from declared(each)


def routes_of(app: FastAPI) -> Iterator[tuple[str, str, list[Any]]]:
    for route in iter_route_contexts(app.routes):
        if str(route.path).startswith("/static/"):
            continue
        guards = list(declared(route.dependant)) if hasattr(route, "dependant") else []
        for method in sorted(route.methods or ()):
            yield method, str(route.path), guards


def guarded_routes(app: FastAPI) -> list[Visited]:
    order: tuple[Scope, ...] = ("read", "build", "deploy", "admin")
    found = []
    for method, path, guards in routes_of(app):
        if path not in OPEN:
            # A route with several guards has to satisfy all; none of ours mixes build with deploy.
            scope = max((guard.scope for guard in guards), key=order.index)
            found.append(Visited(method, path, scope, any(guard.in_person for guard in guards)))
    return found


# Who may do what does not depend on where it is kept.
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@on_sqlite
def test_every_route_says_what_it_needs_or_is_one_of_the_open_ones(database: Database, tmp_path: Path) -> None:
    app = app_on(database, tmp_path)
    silent = {(method, path) for method, path, guards in routes_of(app) if not guards and path not in OPEN}
    assert silent == set(), "every route needs Viewer, Builder, Deployer, Admin or needs(scope): see console/web/who.py"
    changing = [(method, path) for method, path, _ in routes_of(app) if method in ("HEAD", "OPTIONS", "TRACE")]
    assert changing == []
    assert {path for _, path, _ in routes_of(app)} >= OPEN | {"/", "/users", "/metrics", "/api/v1/users/{name}"}


@on_sqlite
@pytest.mark.parametrize("somebody", EVERYBODY, ids=lambda each: each.name)
def test_everybody_gets_through_where_they_may_and_nowhere_else(database: Database, tmp_path: Path, somebody: Somebody) -> None:
    assert asyncio.run(what_is_wrong(app_on(database, tmp_path), database, somebody)) == []


async def what_is_wrong(app: FastAPI, database: Database, somebody: Somebody) -> list[str]:
    wrong, headers_now = [], somebody.arrive(database)
    for route in guarded_routes(app):
        status, headers = await visit(app, route.method, route.sample, headers_now())
        # Who logs out is sent to the login too, but told so.
        to_login = status == 303 and headers["location"].startswith("/login") and "set-cookie" not in headers
        let_through = status not in (401, 403) and not to_login
        known = somebody.role is not None and not somebody.worthless
        refused_rightly = status == 403 if known else status == 401 or to_login
        may = somebody.may(route.scope, in_person=route.in_person)
        if not (let_through and status < 500 if may else refused_rightly):
            wrong.append(f"{route.method} {route.path} (needs {route.scope}): {status} {headers.get('location', '')}")
    return wrong
