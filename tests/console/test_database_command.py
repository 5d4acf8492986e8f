"""`roundhouse database`."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest
from sqlalchemy import select, text
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.home import Home
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.models import AuditEntry
from roundhouse.errors import SetupError


def test_a_database_comes_to_be_and_says_what_it_is(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["database", *arguments, "--home", str(tmp_path / "new")])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert json.loads(run("current", "--json"))["found"] is None
    assert "it was not there" in run("upgrade")
    assert "already" in run("upgrade")
    state = json.loads(run("current", "--json"))
    assert state["current"]
    assert state["found"] == state["wanted"]
    assert str(tmp_path / "new") in run("current")
    database = Database(database_url(None, Home(tmp_path / "new")))
    with database.reading() as session:
        entries = session.scalars(select(AuditEntry)).all()
    database.close()
    assert [(entry.action, entry.by, entry.subject) for entry in entries] == [
        ("database.upgrade", "command line", state["found"])
    ]


COMMANDS = {
    "database current": 0,
    "database upgrade": 0,
    "users list": 0,
    "users add ann": 0,
    "users password nobody": 1,
    "worker --check": 1,
}
"""And what they end with on a database that has everything but accounts and workers."""


@pytest.mark.parametrize("newer", [False, True], ids=["as it is", "of a newer version"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_leaves_a_connection_open(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, newer: bool
) -> None:
    opened: list[str] = []
    closed: list[str] = []
    made, close = Database.__init__, Database.close
    monkeypatch.setattr(Database, "__init__", lambda self, url: opened.append(made(self, url) or "") or None)
    monkeypatch.setattr(Database, "close", lambda self: closed.append(close(self) or ""))
    if newer:
        with database.writing() as session:
            session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    place = ["--database", database.url.render_as_string(hide_password=False), "--home", str(tmp_path)]
    result = CliRunner().invoke(app, [*command.split(), *place], input="a long password\n")
    says_so = command == "database current"
    assert result.exit_code == (1 if newer and not says_so else COMMANDS[command]), result.output
    assert len(opened) == len(closed) == 1
    gc.collect()  # whatever is open still would warn now, and a warning is a failure


def test_a_database_that_is_not_there_is_an_error_without_its_password(tmp_path: Path) -> None:
    url = "postgresql://ann:secret@127.0.0.1:1/x"
    result = CliRunner().invoke(app, ["database", "current", "--database", url, "--home", str(tmp_path)])
    assert isinstance(result.exception, SetupError)
    assert "secret" not in str(result.exception)
