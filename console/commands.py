"""`roundhouse console` and `roundhouse database`; `worker` and `users` have modules of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.extras import require_extra

from .account_commands import users_commands, whoever_has_the_database
from .command_options import DatabaseOption, ModelsOption
from .worker.command import worker

if TYPE_CHECKING:
    from .database.database import Database

__all__ = ["add_commands"]


def add_commands(app: typer.Typer) -> None:
    """Mount this room's commands."""
    app.command()(console)
    app.command()(worker)
    app.command()(demo)
    database = typer.Typer(help="The console's database.", no_args_is_help=True)
    database.command()(upgrade)
    database.command()(current)
    app.add_typer(database, name="database")
    app.add_typer(users_commands(), name="users")


def console(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    public_url: Annotated[
        str | None, typer.Option(metavar="URL", help="How browsers reach it through a proxy, such as https://name.example.")
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="The proxy's address or network; may be repeated. Default: this machine."),
    ] = None,
    models: ModelsOption = None,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Run a worker beside it.")] = True,
    database: DatabaseOption = None,
    home: HomeOption = None,
) -> None:
    """Open the web console, with a worker beside it, until Ctrl-C. The first time it prints the link that makes an account."""
    require_extra("console")
    from .run import run_console
    from .settings import ConsoleSettings

    settings = ConsoleSettings(
        home=home_at(home),
        host=host,
        port=port,
        public_url=public_url,
        proxies=tuple(proxy or ()),
        model_folders=tuple(folder.expanduser().resolve() for folder in models or ()),
        worker=worker,
    )
    with _open(database, home) as opened:
        run_console(settings, opened, say=typer.echo, log=lambda line: typer.echo(line, err=True))


def demo(database: DatabaseOption = None, home: HomeOption = None, json: JsonOption = False) -> None:
    """Build the demo model, serve it on Triton, ask it through both endpoints, and show what was measured.

    Everything is recorded as the console does it.
    """
    require_extra("build", "serve", "console")
    from .demo import run_demo
    from .settings import ConsoleSettings

    with _open(database, home) as opened:
        report = run_demo(ConsoleSettings(home=home_at(home)), opened, quiet=json)
    if json:
        print_json(report.model_dump(mode="json"))


def upgrade(database: DatabaseOption = None, home: HomeOption = None) -> None:
    """Bring the schema of the console's database to this version's. Save a copy first; consoles and workers must not run."""
    require_extra("console")
    from .access.audit import audit
    from .database.schema import upgrade as run

    with _open(database, home) as opened:
        before = run(opened)
        if not before.is_current:
            with opened.writing() as session:
                audit(session, whoever_has_the_database(), "database.upgrade", "database", before.wanted, before=before.found)
    if before.is_current:
        typer.echo(f"the schema is {before.wanted} already")
    else:
        typer.echo(f"the schema is {before.wanted} now; it was {before.found or 'not there'}")


def current(database: DatabaseOption = None, home: HomeOption = None, json: JsonOption = False) -> None:
    """Say which schema the console's database has, and which this version needs."""
    require_extra("console")
    from .database.database import shown_url
    from .database.schema import schema_state

    with _open(database, home) as opened:
        state = schema_state(opened)
    if json:
        print_json({"found": state.found, "wanted": state.wanted, "current": state.is_current})
    else:
        typer.echo(f"{shown_url(opened.url)}: schema {state.found or 'none'}, this version needs {state.wanted}")


def _open(url: str | None, home: Path | None) -> Database:
    from .database.database import Database, database_url

    return Database(database_url(url, home_at(home)))
