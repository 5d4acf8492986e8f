"""`roundhouse database`."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest
from sqlalchemy import select
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


@pytest.mark.parametrize(
    "words",
    [
        ("database", "current"),
        ("database", "upgrade"),
        ("users", "list"),
        ("users", "add", "ann"),
        ("users", "password", "nobody"),
        ("worker", "--check"),
    ],
    ids=" ".join,
)
def test_no_command_leaves_a_connection_open(database: Database, tmp_path: Path, words: tuple[str, ...]) -> None:
    url = database.url.render_as_string(hide_password=False)
    CliRunner().invoke(app, [*words, "--database", url, "--home", str(tmp_path)], input="a long password\n")
    gc.collect()  # whatever is open still would warn now, and a warning is a failure


def test_a_database_that_is_not_there_is_an_error_without_its_password(tmp_path: Path) -> None:
    url = "postgresql://ann:secret@127.0.0.1:1/x"
    result = CliRunner().invoke(app, ["database", "current", "--database", url, "--home", str(tmp_path)])
    assert isinstance(result.exception, SetupError)
    assert "secret" not in str(result.exception)
