"""Options that several of the console's commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DATABASE_DESCRIPTOR", "DATABASE_VARIABLE", "DatabaseOption", "ModelsOption"]

DATABASE_VARIABLE = "ROUNDHOUSE_DATABASE"
"""The environment variable for the database's URL: unlike a command line, other users cannot read it."""
DATABASE_DESCRIPTOR = "ROUNDHOUSE_DATABASE_FD"
"""How a console tells the worker that it starts: the number of a descriptor with the URL. An environment stays readable for
every process of the same user as long as a process lives, whatever it takes out of it."""

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        envvar=DATABASE_VARIABLE,
        help="URL of the database: sqlite:////path or postgresql://user@host/name. Default: a file in the home.",
    ),
]

ModelsOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Under which model folders may lie; may be repeated. Default: models/ in the home."),
]
