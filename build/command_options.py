"""What the commands of every room share: options, JSON on standard output, the home folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from .home import Home, default_home

if TYPE_CHECKING:
    from .terminal import BuildTerminal

__all__ = ["HomeOption", "JsonOption", "home_at", "print_json", "progress_terminal"]

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Where engines are kept (default: $ROUNDHOUSE_HOME or the user data folder).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer as JSON on standard output.")]


def print_json(value: object) -> None:
    """Write one JSON value, and nothing else, to standard output.

    Raises:
        ValueError: a number in it is not finite; JSON has no word for that, and readers differ in what they make of one.
    """
    import json

    typer.echo(json.dumps(value, indent=2, default=str, allow_nan=False))


def progress_terminal() -> BuildTerminal:
    """A terminal for a build's events, on standard error: standard output is the answer."""
    from .terminal import BuildTerminal

    # The stream itself, not `stderr=True`: libraries are silenced by redirecting sys.stderr while we show progress.
    return BuildTerminal(Console(file=sys.stderr))


def home_at(given: Path | None) -> Home:
    """The home folder of a command line."""
    return Home(given.expanduser().resolve()) if given else default_home()
