"""The console from its start to its end: database, web server, and the worker beside it."""

from __future__ import annotations

from collections.abc import Callable

from .access.accounts import any_accounts
from .database.database import Database
from .database.schema import open_database
from .housekeeping import Housekeeping
from .settings import ConsoleSettings
from .web.app import create_app
from .web.server import WebServer
from .worker_beside import WorkerBeside

__all__ = ["run_console"]


def run_console(
    settings: ConsoleSettings, database: Database, *, say: Callable[[str], None], log: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP. Must be called from the main thread.

    Args:
        settings: what it runs with.
        database: made ready here, when it is new.
        say: tells where it answers.
        log: gets the worker's lines.

    Raises:
        SetupError: the database cannot be used as it is.
        ServeError: the port is taken.
    """
    open_database(database)
    app = create_app(settings, database)
    server = WebServer(app, settings)
    address = settings.address(server.port)
    with database.reading() as session:
        first = not any_accounts(session)
    say(f"console: {address}")
    if settings.is_exposed:
        say(f"warning: {settings.host} is reached in clear; put a TLS proxy before it and name it with --public-url")
    if settings.is_nameless:
        say("note: only browsers on this machine are answered; others need its name, given with --public-url http://name:port")
    if first:
        say(f"make the first account: {address}/setup?token={app.state.roundhouse.first_account.secret}")
    secret_url = database.url.render_as_string(hide_password=False)
    beside = WorkerBeside(settings, secret_url, log) if settings.worker else None
    keeping = Housekeeping(database)

    def meanwhile() -> None:
        if beside is not None:
            beside.keep_running()
        keeping.when_due()

    try:
        server.run(meanwhile)
    finally:
        if beside is not None:
            beside.stop()
