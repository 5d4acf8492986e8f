"""Every test that takes ``database`` runs on SQLite and on PostgreSQL, from the migrations."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from roundhouse.build.home import Home
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.database.schema import open_database

POSTGRES = "ROUNDHOUSE_TEST_POSTGRES"
"""URL of a server on which databases may be made."""


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of its own, with nothing in it."""
    home = Home(tmp_path / "home of % all")
    if request.param == "sqlite":
        yield from _opened(database_url(None, home))
        return
    server = os.environ.get(POSTGRES)
    if not server:
        pytest.skip(f"{POSTGRES} names no PostgreSQL server")
    name = f"test_{uuid.uuid4().hex}"
    admin = create_engine(database_url(server, home), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield from _opened(database_url(server, home).set(database=name))
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


@pytest.fixture
def database(empty_database: Database) -> Database:
    """A database of its own, as the migrations make it."""
    open_database(empty_database)
    return empty_database


def _opened(url: Any) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.close()
