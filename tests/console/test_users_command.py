"""roundhouse users: a way in for who has the database."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner, Result

from roundhouse.__main__ import app
from roundhouse.build.home import Home
from roundhouse.console.access.accounts import password_fits
from roundhouse.console.access.logins import Logins
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.models import AuditEntry, LoginSession, User
from roundhouse.errors import RoundhouseError

PASSWORD = "correct horse battery"


def run(home: Path, *words: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, ["users", *words, "--home", str(home)], input=typed)


def opened(home: Path) -> Database:
    return Database(database_url(None, Home(home)))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    added = run(tmp_path, "add", "Ann", "--role", "admin", typed=f"{PASSWORD}\n")
    assert added.exit_code == 0, added.output
    return tmp_path


def test_an_account_is_made_and_listed(home: Path) -> None:
    assert "ann  admin  active  never logged in" in run(home, "list").output
    assert '"name": "ann"' in run(home, "list", "--json").output
    with opened(home).reading() as session:
        user = session.scalars(select(User)).one()
        entry = session.scalars(select(AuditEntry)).one()
    assert password_fits(user, PASSWORD)
    assert (entry.action, entry.by, entry.who, entry.address) == ("user.add", "command line", getpass.getuser(), "local")


def test_another_password_ends_its_logins(home: Path) -> None:
    database = opened(home)
    with database.writing() as session:
        Logins().begin(session, session.scalars(select(User)).one(), address="", browser="")
    changed = run(home, "password", "ann", typed="another long password\n")
    assert changed.exit_code == 0, changed.output
    assert PASSWORD not in changed.output
    with database.reading() as session:
        assert password_fits(session.scalars(select(User)).one(), "another long password")
        assert session.scalars(select(LoginSession)).all() == []


@pytest.mark.parametrize(
    ("words", "typed", "why"),
    [
        (("add", "ann"), PASSWORD, "already"),
        (("add", "bob"), "short", "12 to 1,024"),
        (("password", "nobody"), PASSWORD, "no account nobody"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(home: Path, words: tuple[str, ...], typed: str, why: str) -> None:
    answer = run(home, *words, typed=f"{typed}\n")
    assert isinstance(answer.exception, RoundhouseError)
    assert why in answer.exception.message


def test_no_command_takes_a_password_as_an_argument(home: Path) -> None:
    for command in ("add", "password"):
        assert "--password" not in run(home, command, "--help").output
        assert run(home, command, "ann", PASSWORD).exit_code == 2


def test_on_a_terminal_it_is_asked_for_twice(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roundhouse.console import account_commands

    answers = iter(["one long password", "another long password"])
    monkeypatch.setattr(account_commands.getpass, "getpass", lambda _: next(answers))
    monkeypatch.setattr(account_commands.sys, "stdin", type("Terminal", (), {"isatty": lambda _: True})())
    with pytest.raises(RoundhouseError, match="differ"):
        account_commands.add("bob", "viewer", None, home)
