"""`roundhouse database`; more of the console's commands come here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.extras import require_extra

if TYPE_CHECKING:
    from pathlib import Path

    from .database.database import Database

__all__ = ["add_commands"]

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        envvar="ROUNDHOUSE_DATABASE",
        help="URL of the database: sqlite:////path or postgresql://user@host/name. Default: a file in the home.",
    ),
]


def add_commands(app: typer.Typer) -> None:
    """Mount this room's commands."""
    database = typer.Typer(help="The console's database.", no_args_is_help=True)
    database.command()(upgrade)
    database.command()(current)
    app.add_typer(database, name="database")


def upgrade(database: DatabaseOption = None, home: HomeOption = None) -> None:
    """Bring the schema of the console's database to this version's. Save a copy first; consoles and workers must not run."""
    from .database.schema import upgrade as run

    opened = _open(database, home)
    before = run(opened)
    if before.is_current:
        typer.echo(f"the schema is {before.wanted} already")
    else:
        typer.echo(f"the schema is {before.wanted} now; it was {before.found or 'not there'}")


def current(database: DatabaseOption = None, home: HomeOption = None, json: JsonOption = False) -> None:
    """Say which schema the console's database has, and which this version needs."""
    from .database.schema import schema_state

    opened = _open(database, home)
    state = schema_state(opened)
    if json:
        print_json({"found": state.found, "wanted": state.wanted, "current": state.is_current})
    else:
        typer.echo(f"{opened.url.render_as_string()}: schema {state.found or 'none'}, this version needs {state.wanted}")


def _open(url: str | None, home: Path | None) -> Database:
    require_extra("console")
    from .database.database import Database, database_url

    return Database(database_url(url, home_at(home)))
