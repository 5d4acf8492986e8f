"""Every test that takes ``database`` runs on SQLite and on PostgreSQL, from the migrations.

They are run once for each kind; a test gets a copy of what they made.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy import URL, create_engine, text

from roundhouse.build.home import Home
from roundhouse.console.access import accounts
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.database.schema import open_database

POSTGRES = "ROUNDHOUSE_TEST_POSTGRES"
"""URL of a server on which databases may be made."""


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, URL]]:
    """A database of each kind, as the migrations make it; nobody is connected to them."""
    file = tmp_path_factory.mktemp("databases") / "migrated.sqlite3"
    made = {"sqlite": URL.create("sqlite", database=str(file))}
    _migrate(made["sqlite"])
    if not os.environ.get(POSTGRES):
        yield made
        return
    with _postgres_database(None) as url:
        _migrate(url)
        yield made | {"postgresql": url}


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of its own, with nothing in it."""
    if request.param == "sqlite":
        yield from _opened(database_url(None, Home(tmp_path / "home of % all")))
        return
    _require_postgres()
    with _postgres_database(None) as url:
        yield from _opened(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path, migrated: dict[str, URL]) -> Iterator[Database]:
    """A database of its own, as the migrations make it."""
    if request.param == "sqlite":
        url = database_url(None, Home(tmp_path / "home of % all"))
        Path(str(url.database)).parent.mkdir(parents=True)
        shutil.copy(str(migrated["sqlite"].database), str(url.database))
        yield from _opened(url)
        return
    _require_postgres()
    with _postgres_database(str(migrated["postgresql"].database)) as url:
        yield from _opened(url)


@pytest.fixture(autouse=True)
def _cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashing is slow on purpose; in tests it is not."""
    monkeypatch.setattr(accounts, "_passwords", PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),)))


def _require_postgres() -> None:
    if not os.environ.get(POSTGRES):
        pytest.skip(f"{POSTGRES} names no PostgreSQL server")


@contextmanager
def _postgres_database(template: str | None) -> Iterator[URL]:
    server = database_url(os.environ[POSTGRES], Home(Path()))
    name = f"test_{uuid.uuid4().hex}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else "")))
    try:
        yield server.set(database=name)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


def _migrate(url: URL) -> None:
    database = Database(url)
    open_database(database)
    database.close()


def _opened(url: URL) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.close()
