"""The folder that a deployment keeps its temporary files in."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

from roundhouse.errors import ServeError

from .disk import writing
from .leftovers import own_folder
from .triton.locate import TritonInstall

__all__ = ["private_folder", "within_plain_path"]

_PLAIN_PATH = re.compile(r"[\w./+-]+")


def private_folder() -> Path:
    """A folder only for this deployment; those of killed ones are removed on the way.

    Raises:
        ServeError: it cannot be made, or its path has characters that Triton would pass to a shell as they are.
    """
    temporary = Path(tempfile.gettempdir())
    if not _PLAIN_PATH.fullmatch(str(temporary)):
        hint = "Set TMPDIR to a folder whose path has letters, digits and . _ - / only."
        raise ServeError(f"Triton cannot start from {temporary}", hint=hint)
    return own_folder("the deployment's folder")


def within_plain_path(install: TritonInstall, folder: Path) -> TritonInstall:
    """The same server, its backends reached by a link in ``folder``: Triton starts its stub through a shell, unquoted."""
    link = folder / "backends"
    with writing("a link to Triton's backends", folder):
        link.symlink_to(install.backend_directory, target_is_directory=True)
    return replace(install, backend_directory=link)
