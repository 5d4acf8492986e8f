"""A console on a port of its own, and the command line that uses it as from another machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from populated import token_of
from served_app import Answer, RemoteCommand, ServedApp

from roundhouse.__main__ import main
from roundhouse.build.home import Home
from roundhouse.console.database.database import Database
from roundhouse.console.remote import client, following
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for that is not there yet."""
    monkeypatch.setattr(following, "_POLL_S", 0.02)
    monkeypatch.setattr(client, "_PAUSES_S", (0.01, 0.01))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def console(database: Database, home: Home) -> Iterator[str]:
    """The address of a console on this database."""
    served = ServedApp(create_app(ConsoleSettings(home=home), database))
    yield served.url
    served.stop()


@pytest.fixture
def remote(console: str, database: Database, run_main: RemoteCommand, monkeypatch: pytest.MonkeyPatch) -> RemoteCommand:
    """Runs a command for the console, as an admin."""
    monkeypatch.setenv("ROUNDHOUSE_TOKEN", token_of(database))
    return lambda *arguments, **more: run_main("--server", console, *arguments, **more)


@pytest.fixture
def run_main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RemoteCommand:
    """Runs the command line in this process."""
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("ROUNDHOUSE_SERVER", "ROUNDHOUSE_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["roundhouse", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Answer(ended.value.code if isinstance(ended.value.code, int) else 0, said.out, said.err)

    return run
