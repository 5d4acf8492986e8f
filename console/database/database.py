"""The console's database: SQLite in the home, or PostgreSQL by URL, behind two kinds of transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import Session

from roundhouse.build.home import Home
from roundhouse.errors import UsageError

from .clock import clock

__all__ = ["Database", "database_url", "shown_url"]

_BUSY_MS = 20_000
"""How long SQLite waits for another writer."""
_WRITES = "roundhouse_writes"
_CONNECTIONS, _CONNECTIONS_MORE = 20, 25
"""To a server, kept and at most beside them: more together than a web process has threads."""
_CONNECTION_WAIT_S = 10.0
_CONNECTION_AGE_S = 900
"""Then it is made anew, and the clocks are compared."""


def database_url(given: str | None, home: Home) -> URL:
    """Where the database is.

    Args:
        given: a URL, or None for the SQLite file in the home.
        home: whose file it is then.

    Raises:
        UsageError: neither SQLite nor PostgreSQL, or no URL at all.
    """
    if given is None:
        return URL.create("sqlite", database=str(home.database))
    try:
        url = make_url(given)
    except ArgumentError:
        raise UsageError("--database is no URL", hint="Write sqlite:////path/to/file or postgresql://user@host/name.") from None
    kinds = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
    if (name := url.drivername.partition("+")[0]) not in kinds:
        raise UsageError(f"--database {shown_url(url)}: there is SQLite and PostgreSQL")
    return url.set(drivername=kinds[name])


def shown_url(url: URL) -> str:
    """A URL as people may see it: without its password, wherever in it that stands."""
    return url.update_query_dict({key: "***" for key in url.query if "password" in key.lower()}).render_as_string()


class Database:
    """Opens transactions.

    On SQLite a transaction that has read cannot begin to write when somebody else has written meanwhile; it would fail at
    once, whatever the timeout. So who may write says so first, and waits for its turn at the beginning.

    Args:
        url: from :func:`database_url`.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.engine = _create_engine(url)
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._for_reading = self.engine.execution_options(**options)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file, not a server."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that sees one state of everything and changes nothing; what it has read may be used after it."""
        with Session(self._for_reading, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that may change things; committed at the end, undone when something is raised."""
        with Session(self.engine.execution_options(**{_WRITES: True}), expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        """Give up all connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _create_engine(url: URL) -> Engine:
    # Errors are logged, and parameters may be secrets.
    if url.get_backend_name() != "sqlite":
        return _on_server(url)
    engine = create_engine(url, connect_args={"timeout": _BUSY_MS / 1000}, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # the driver's own transactions begin too late
        for pragma in ("journal_mode=WAL", "foreign_keys=ON", f"busy_timeout={_BUSY_MS}", "synchronous=NORMAL"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITES) else "BEGIN")

    return engine


def _on_server(url: URL) -> Engine:
    engine = create_engine(
        url,
        pool_pre_ping=True,
        hide_parameters=True,
        pool_size=_CONNECTIONS,
        max_overflow=_CONNECTIONS_MORE,
        pool_timeout=_CONNECTION_WAIT_S,
        pool_recycle=_CONNECTION_AGE_S,
    )

    @event.listens_for(engine, "connect")
    def compare_clocks(connection: DBAPIConnection, _: object) -> None:
        cursor = connection.cursor()
        asked = clock.of_machine()
        cursor.execute("SELECT clock_timestamp()")
        ((server,),) = cursor.fetchall()
        clock.follow(server, asked, clock.of_machine())
        cursor.close()
        connection.rollback()

    return engine
