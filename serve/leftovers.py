"""Names for what a killed process would leave behind, so that the next one can tell and remove it.

Shared-memory regions and private folders carry their owner's process id and its PID namespace:
another container's processes look dead from here, and theirs are not ours to remove.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from pathlib import Path

import psutil

from .disk import writing

__all__ = ["own_folder", "owned_name", "remove_leftovers", "remove_named"]

_OURS = re.compile(r"roundhouse_(?P<pid>\d+)_(?P<namespace>[0-9a-f]+)_")


def owned_name() -> str:
    """A fresh name, ``roundhouse_<pid>_<namespace>_<random>``, that says that this process owns the thing."""
    return f"roundhouse_{os.getpid()}_{_namespace()}_{secrets.token_hex(3)}"


def own_folder(what: str) -> Path:
    """A new private folder of this process among temporary files; those of killed processes are removed on the way.

    Args:
        what: is written there, in words.

    Raises:
        ServeError: it cannot be made.
    """
    temporary = Path(tempfile.gettempdir())
    remove_leftovers(temporary)
    folder = temporary / owned_name()
    with writing(what, temporary):
        folder.mkdir(mode=0o700)
    return folder


def remove_named(folder: Path, name: str) -> int:
    """Remove everything in ``folder`` whose name starts with ``name``; how many things there were."""
    found = list(folder.glob(f"{name}*"))
    for path in found:
        _remove(path)
    return len(found)


def remove_leftovers(folder: Path) -> int:
    """Remove what processes that no longer exist left in ``folder``; how many things there were."""
    found = [path for path in folder.glob("roundhouse_*") if _is_left_over(path)]
    for path in found:
        _remove(path)
    return len(found)


def _is_left_over(path: Path) -> bool:
    owner = _OURS.match(path.name)
    if owner is None or owner["namespace"] != _namespace():
        return False
    try:
        return path.lstat().st_uid == os.getuid() and not _exists(int(owner["pid"]))
    except FileNotFoundError:  # another process was faster
        return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _namespace() -> str:
    return f"{os.stat('/proc/self/ns/pid').st_ino:x}"


def _exists(pid: int) -> bool:
    """Whether it still runs. One that was killed and whose parent has not asked how it ended does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
