"""Whether a command line that we write somewhere is one of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer.main

from roundhouse.__main__ import app

__all__ = ["parse", "with_defaults"]

_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


def parse(words: Sequence[str]) -> dict[str, Any]:
    """The parameters of a command line, without the word ``roundhouse``; nothing is run.

    Raises:
        ClickException: there is no such command or option, or an argument is missing.
    """
    command: Any = typer.main.get_command(app)
    rest = list(words)
    while hasattr(command, "commands"):
        name = rest.pop(0)
        command = command.commands[name]
    parameters: dict[str, Any] = command.make_context(command.name, rest).params
    return parameters


def with_defaults(text: str) -> str:
    """A text of a compose file as it is when no variable is set."""
    return _DEFAULT.sub(r"\1", text)
