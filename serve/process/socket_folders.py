"""Private folders for the sockets of an engine process: a fresh one for each of its runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from roundhouse.errors import ServeError

__all__ = ["SocketFolders"]

_LONGEST_SOCKET_PATH = 107
"""Bytes that the kernel allows for the path of a Unix socket."""
_LONGEST_NAME = "requests"


class SocketFolders:
    """A new run must never read what was sent to an old one, so each gets a folder of its own.

    Raises:
        ServeError: the temporary folder cannot be written to.
    """

    def __init__(self) -> None:
        with _named_errors(tempfile.gettempdir()):
            self._home = Path(tempfile.mkdtemp(prefix="rh-"))
        self._runs = 0

    def fresh(self) -> Path:
        """Make the next run's folder.

        Raises:
            ServeError: it cannot be made, or its path is too long for a socket in it.
        """
        self._runs += 1
        folder = self._home / str(self._runs)
        with _named_errors(self._home):
            folder.mkdir()
        if len(os.fsencode(folder / _LONGEST_NAME)) > _LONGEST_SOCKET_PATH:
            message = f"the path of sockets in {folder} is longer than the {_LONGEST_SOCKET_PATH} bytes that the kernel allows"
            raise ServeError(message, hint="Set TMPDIR to a folder with a short path.")
        return folder

    def remove(self) -> None:
        """Remove all of them. May be called more than once."""
        shutil.rmtree(self._home, ignore_errors=True)


@contextlib.contextmanager
def _named_errors(folder: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"the engine process's sockets have no place in {folder}: {error.strerror}"
        raise ServeError(message, hint="Free disk space, or set TMPDIR to another folder.") from None
