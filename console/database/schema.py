"""How the schema comes to be: by migrations, and by nothing else.

One process at a time migrates. A database that a newer version made is refused: this version does not know what its columns
mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, inspect, text

from roundhouse.errors import RoundhouseError, SetupError

from .database import Database, shown_url

__all__ = ["SchemaState", "alembic_config", "open_database", "schema_state", "upgrade"]

_LOCK = 0x526F756E64
"""The advisory lock on PostgreSQL: "Round"."""


@dataclass(frozen=True)
class SchemaState:
    """Which revision a database has, and which one this version wants."""

    found: str | None
    """None: the database is empty."""
    wanted: str
    known: bool
    """Whether this version knows the revision that was found."""

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to do."""
        return self.found == self.wanted


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's settings; there is no ini file."""
    config = Config()
    config.set_main_option("script_location", str(files("roundhouse.migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def schema_state(database: Database) -> SchemaState:
    """What the schema is.

    Raises:
        SetupError: the database cannot be reached, or holds tables that are not ours.
    """
    with _connected(database) as connection:
        return _state(connection, database)


def upgrade(database: Database) -> SchemaState:
    """Bring the schema to what this version wants; from nothing, too.

    Returns:
        What it was before.

    Raises:
        SetupError: as :func:`schema_state`, or a newer version made it.
    """
    with _connected(database) as connection:
        with _alone(connection, database):
            before = _state(connection, database)
            _refuse_newer(before, database)
            if not before.is_current:
                command.upgrade(alembic_config(connection), "head")
        connection.commit()
    return before


def open_database(database: Database) -> None:
    """Make a new database ready for use. One that is there already is upgraded only when somebody says so.

    Raises:
        SetupError: the schema is older or newer than this version's, or as :func:`schema_state`.
    """
    state = schema_state(database)
    _refuse_newer(state, database)
    if state.found is None:
        upgrade(database)
    elif not state.is_current:
        raise SetupError(
            f"the database {_shown(database)} has an older schema ({state.found}) than this version needs ({state.wanted})",
            hint="Save a copy of it, end consoles and workers, and run: roundhouse database upgrade",
        )


def _state(connection: Connection, database: Database) -> SchemaState:
    script = ScriptDirectory.from_config(alembic_config())
    found = MigrationContext.configure(connection).get_current_revision()
    if found is None and (others := sorted({*inspect(connection).get_table_names()} - {"alembic_version"})):
        raise SetupError(
            f"the database {_shown(database)} holds other tables: {', '.join(others[:3])}",
            hint="Give the console a database of its own.",
        )
    try:
        known = found is None or script.get_revision(found) is not None
    except CommandError:
        known = False
    return SchemaState(found, str(script.get_current_head()), known)


def _refuse_newer(state: SchemaState, database: Database) -> None:
    if not state.known:
        raise SetupError(
            f"a newer version of Roundhouse made the database {_shown(database)} (schema {state.found})",
            hint="Use that version, or another database.",
        )


@contextmanager
def _connected(database: Database) -> Iterator[Connection]:
    if database.is_sqlite and database.url.database not in (None, ":memory:"):
        Path(str(database.url.database)).parent.mkdir(parents=True, exist_ok=True)
    try:
        with database.engine.connect() as connection:
            yield connection
    except RoundhouseError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise SetupError(f"the database {_shown(database)} cannot be used: {reason}", hint="Check --database.") from error


@contextmanager
def _alone(connection: Connection, database: Database) -> Iterator[None]:
    """No other process migrates meanwhile."""
    if database.is_sqlite:  # the transaction that alembic writes in is alone already, from its first read on
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield
        return
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    yield


def _shown(database: Database) -> str:
    """The URL without its password."""
    return shown_url(database.url)
