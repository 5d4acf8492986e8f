"""What to say when a file or folder that serving needs cannot be written."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from roundhouse.errors import ServeError

__all__ = ["spelled_out", "write_whole", "writing"]


@contextlib.contextmanager
def writing(what: str, folder: Path, *, variable: str = "TMPDIR") -> Iterator[None]:
    """Around the writing of something in ``folder``.

    Args:
        what: in words.
        folder: where it is written.
        variable: the environment variable that names another place.

    Raises:
        ServeError: instead of the system's own error: a full disk, a folder that is gone or read-only.
    """
    try:
        yield
    except OSError as error:
        message = f"{what} cannot be written to {folder}: {error.strerror or error}"
        raise ServeError(message, hint=f"Free disk space, or set {variable} to another folder.") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that others see whole or not at all; until then they see what was there before.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    making = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with making.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        making.replace(path)
    except BaseException:
        making.unlink(missing_ok=True)
        raise


def spelled_out(path: str | Path) -> Path:
    """A path with ``~`` as the folder that it stands for; that of a user who is not there stays as it is, as in shells."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
