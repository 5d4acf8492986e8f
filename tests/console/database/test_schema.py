"""The schema comes from migrations alone, and only forwards without asking."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from roundhouse.build.home import Home
from roundhouse.console.database.base import Base
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.database.schema import alembic_config, open_database, schema_state, upgrade
from roundhouse.errors import SetupError, UsageError

ROOT = Path(__file__).parents[3]
STEPS = sorted((ROOT / "migrations" / "versions").glob("[0-9]*.py"))
REVISIONS = [path.name.partition("_")[0] for path in STEPS]


def test_a_new_database_becomes_what_the_models_say(empty_database: Database) -> None:
    state = schema_state(empty_database)
    assert (state.found, state.is_current) == (None, False)
    open_database(empty_database)
    assert schema_state(empty_database).is_current
    with empty_database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_every_step_can_be_undone_and_done_again(empty_database: Database) -> None:
    assert schema_state(empty_database).found is None
    with empty_database.engine.connect() as connection:
        for revision in REVISIONS:
            for wanted, to in ((command.upgrade, revision), (command.downgrade, "-1"), (command.upgrade, revision)):
                wanted(alembic_config(connection), to)
                connection.commit()
        command.downgrade(alembic_config(connection), "base")
        connection.commit()
        assert inspect(connection).get_table_names() == ["alembic_version"]
        connection.rollback()
    assert upgrade(empty_database).found is None
    assert schema_state(empty_database).is_current


def test_steps_follow_each_other_in_one_line() -> None:
    scripts = ScriptDirectory.from_config(alembic_config())
    assert len(scripts.get_heads()) == 1
    assert [scripts.get_revision(each).down_revision for each in REVISIONS] == [None, *REVISIONS[:-1]]


def test_a_step_that_was_released_stays_as_it_is() -> None:
    """A database that has taken a step never takes it again. A new one is written into the golden file by hand."""
    found = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in STEPS]
    assert found == (ROOT / "tests" / "golden" / "migrations.txt").read_text().splitlines()


def test_many_who_open_a_new_database_at_once_make_it_once(empty_database: Database) -> None:
    errors: list[BaseException] = []

    def open_it() -> None:
        mine = Database(empty_database.url)
        try:
            upgrade(mine)
        except BaseException as error:
            errors.append(error)
        mine.close()

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert schema_state(empty_database).is_current


def test_an_older_schema_is_left_as_it_is_until_somebody_says_so(database: Database) -> None:
    with database.engine.connect() as connection:
        command.downgrade(alembic_config(connection), "-1")
        connection.commit()
    with pytest.raises(SetupError, match="older schema"):
        open_database(database)
    assert schema_state(database).found == REVISIONS[-2]
    assert upgrade(database).found == REVISIONS[-2]
    open_database(database)


def test_a_newer_schema_is_left_as_it_is(database: Database) -> None:
    with database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for use in (open_database, upgrade):
        with pytest.raises(SetupError, match="a newer version of Roundhouse made"):
            use(database)


def test_tables_of_somebody_else_are_not_touched(empty_database: Database) -> None:
    upgrade_of = schema_state(empty_database)
    assert upgrade_of.found is None
    with empty_database.writing() as session:
        session.execute(text("CREATE TABLE invoices (id INTEGER)"))
    with pytest.raises(SetupError, match="holds other tables: invoices"):
        open_database(empty_database)


def test_what_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    lost = Database(database_url("postgresql://ann:secret@127.0.0.1:1/x", Home(tmp_path)))
    with pytest.raises(SetupError, match="cannot be used") as raised:
        schema_state(lost)
    assert "secret" not in str(raised.value)
    with pytest.raises(UsageError, match="there is SQLite and PostgreSQL") as other:
        database_url("mysql://ann:secret@host/x", Home(tmp_path))
    assert "secret" not in str(other.value)
    with pytest.raises(UsageError, match="no URL"):
        database_url("::", Home(tmp_path))
