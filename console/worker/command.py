"""`roundhouse worker`."""

from __future__ import annotations

import logging
import os
import socket
from typing import Annotated

import typer

from roundhouse.build.command_options import HomeOption, home_at
from roundhouse.build.extras import require_extra
from roundhouse.build.home import Home
from roundhouse.errors import SetupError

from ..command_options import DATABASE_DESCRIPTOR, DATABASE_VARIABLE, DatabaseOption, ModelsOption
from ..inherited import take_over

__all__ = ["worker"]


def worker(
    database: DatabaseOption = None,
    home: HomeOption = None,
    models: ModelsOption = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only say whether a worker of this host and home is there (else exit code 1)."),
    ] = False,
) -> None:
    """Do the console's jobs on this machine until Ctrl-C: build, verify, remove, deploy and drill engines of its home."""
    require_extra("console")
    place = Home(home_at(home).path.resolve())
    if check:
        _check(database, place)
        return
    from roundhouse.serve.stop_signals import stop_signals

    from ..database.database import database_url
    from .service import run_worker
    from .settings import WorkerSettings

    os.environ.pop(DATABASE_VARIABLE, None)  # it may hold a password, and what jobs start inherits the rest
    if handed := os.environ.pop(DATABASE_DESCRIPTOR, None):
        database = take_over(int(handed))
    settings = WorkerSettings(
        home=place,
        database=database_url(database, place).render_as_string(hide_password=False),
        model_folders=tuple(folder.expanduser().resolve() for folder in models or ()),
    )
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("roundhouse.console.worker").setLevel(logging.INFO)
    with stop_signals() as stop:
        run_worker(settings, stop)


def _check(database: str | None, home: Home) -> None:
    """Say whether a worker is there. For health checks: nothing is migrated, and nothing written.

    Raises:
        SetupError: the database cannot be reached, or has not this version's schema yet.
    """
    from ..database.database import Database, database_url
    from ..database.schema import schema_state
    from ..workers.queries import is_worker_there

    host = socket.gethostname()
    with Database(database_url(database, home)) as opened:
        if not schema_state(opened).is_current:
            raise SetupError("the database has not this version's schema yet", hint="A console or a worker makes it.")
        with opened.reading() as session:
            there = is_worker_there(session, host, str(home.path))
    typer.echo(f"{'a' if there else 'no'} worker of {host} with the home {home.path} is there")
    if not there:
        raise typer.Exit(1)
