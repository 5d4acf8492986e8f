"""Options that several of the console's commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DATABASE_VARIABLE", "DatabaseOption", "ModelsOption"]

DATABASE_VARIABLE = "ROUNDHOUSE_DATABASE"
"""The environment variable for the database's URL: unlike a command line, other users cannot read it."""

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
