"""`roundhouse worker --check`."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from building import add_worker
from sqlalchemy import update
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import Worker
from roundhouse.errors import SetupError


def check(home: Path, *more: str) -> Any:
    return CliRunner().invoke(app, ["worker", "--check", "--home", str(home), *more])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"home": "/elsewhere"}, 1),
        ({"host": "another"}, 1),
        ({"seen_at": utc_now() - timedelta(minutes=5)}, 1),
        ({"ended_at": utc_now()}, 1),
    ],
    ids=["there", "of another home", "of another host", "silent", "ended"],
)
def test_it_is_there_when_one_of_this_host_and_home_was_heard_of(
    database: Database, tmp_path: Path, changes: dict[str, Any], code: int
) -> None:
    home = tmp_path / "home"
    add_worker(database, socket.gethostname())
    with database.writing() as session:
        session.execute(update(Worker).values({"home": str(home), **changes}))
    result = check(home, "--database", database.url.render_as_string(hide_password=False))
    assert result.exit_code == code, result.output
    assert result.stdout.startswith("no worker of" if code else "a worker of")


def test_a_database_that_nobody_made_yet_is_said(tmp_path: Path) -> None:
    result = check(tmp_path)
    assert isinstance(result.exception, SetupError)
    assert "has not this version's schema yet" in str(result.exception)
