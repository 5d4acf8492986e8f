"""`roundhouse users`: accounts from the command line, for who has the database and has lost the way in."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.extras import require_extra
from roundhouse.errors import UsageError

from .command_options import DatabaseOption

if TYPE_CHECKING:
    from .access.actor import Actor
    from .accounts.records import UserRow
    from .database.database import Database

__all__ = ["users_commands", "whoever_has_the_database"]

RoleOption = Annotated[Literal["viewer", "operator", "admin"], typer.Option(help="Each may do what the ones before it may.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As it is typed to log in.")]


def users_commands() -> typer.Typer:
    """The commands."""
    users = typer.Typer(help="Accounts of the console.", no_args_is_help=True)
    users.command("list")(list_users)
    users.command("add")(add)
    users.command("password")(password)
    return users


def list_users(database: DatabaseOption = None, home: HomeOption = None, json: JsonOption = False) -> None:
    """List all accounts."""
    require_extra("console")
    from .accounts.queries import list_users as query
    from .accounts.records import UserFilter
    from .paging import PageOf

    users: list[UserRow] = []
    with _open(database, home) as opened, opened.reading() as session:
        number = 1
        while (part := query(session, UserFilter(), PageOf(number=number, size=200))).items:
            users += part.items
            number += 1
    if json:
        print_json([user.model_dump(mode="json") for user in users])
        return
    for user in users:
        last = f"last login {user.last_login_at:%Y-%m-%d %H:%M} UTC" if user.last_login_at else "never logged in"
        typer.echo(f"{user.name}  {user.role}  {user.state}  {last}")


def add(name: NameArgument, role: RoleOption = "viewer", database: DatabaseOption = None, home: HomeOption = None) -> None:
    """Make an account. Asks for its password on the terminal; without one, the first line of standard input is it."""
    require_extra("console")
    from .access.accounts import hash_password
    from .accounts.actions import add_user

    with _open(database, home) as opened:
        hashed = hash_password(_ask_password())
        with opened.writing() as session:
            user = add_user(session, whoever_has_the_database(), name, hashed, role)
    typer.echo(f"{user.name} can log in, as {role}")


def password(name: NameArgument, database: DatabaseOption = None, home: HomeOption = None) -> None:
    """Give an account another password, and end its logins. Asks for it as `users add` does."""
    require_extra("console")
    from .access.accounts import hash_password
    from .accounts.actions import reset_password
    from .accounts.queries import find_user

    with _open(database, home) as opened:
        with opened.reading() as session:
            user = find_user(session, name.strip().lower())
        hashed = hash_password(_ask_password())
        with opened.writing() as session:
            reset_password(session, whoever_has_the_database(), user.name, hashed)
    disabled = "; it is disabled, and stays so" if user.state == "disabled" else ""
    typer.echo(f"{user.name} has another password, and is logged out everywhere{disabled}")


@contextmanager
def _open(url: str | None, home: Path | None) -> Iterator[Database]:
    """The database, with this version's schema; a new one is made ready. It is closed at the end."""
    from .database.database import Database, database_url
    from .database.schema import open_database

    with Database(database_url(url, home_at(home))) as database:
        open_database(database)
        yield database


def _ask_password() -> str:
    """A password that is never on a command line, where every process of the machine could read it."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("Password: ")
    if getpass.getpass("Password, again: ") != first:
        raise UsageError("the two passwords differ")
    return first


def whoever_has_the_database() -> Actor:
    """Who acts from the command line: the user of this machine."""
    from .access.actor import Actor

    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        name = "somebody"
    return Actor(user_id=0, name=name, role="admin", by="command line", address="local")
