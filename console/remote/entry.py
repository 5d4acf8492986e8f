"""Whether a command line is for a console on another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .address import SERVER_VARIABLE

__all__ = ["is_for_server"]

_SERVER = "--server"
_WITH_VALUE = ("--token-file",)


def is_for_server(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a command is one for a server: ``--server`` stands before it, or the environment names one.

    The environment alone moves no command that only this machine has, such as ``roundhouse worker``.

    Args:
        arguments: of the process, without its name.
        environment: of the process.
    """
    words = iter(arguments)
    for word in words:
        if word == _SERVER or word.startswith(f"{_SERVER}="):
            return True
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return bool(environment.get(SERVER_VARIABLE)) and word in _commands()
    return False


def _commands() -> set[str]:
    import typer.main

    from .app import app

    return set(getattr(typer.main.get_command(app), "commands", ()))
