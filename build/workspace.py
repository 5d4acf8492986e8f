"""A private place to build one engine in: locked, cleaned of what died there before, published by one rename.

``engines/.building/<id>.lock`` is held (``flock``) for as long as the build lives; the kernel lets go
of it when the process dies, however it dies. ``engines/.building/<id>/`` is where the build writes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

__all__ = ["Workspace", "remove_dead_builds", "workspace"]


class Workspace:
    """The folder of one build in progress."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder = folder
        self._target = target

    def publish(self, publishing: AbstractContextManager[object] | None = None) -> None:
        """Flush everything to disk, then move the folder to its final place in one step.

        Args:
            publishing: entered around that one step and nothing else; raising at its beginning, it keeps the folder here.
        """
        for path in sorted(self.folder.rglob("*")):
            _sync(path)
        _sync(self.folder)
        with publishing or nullcontext():
            self.folder.rename(self._target)
        _sync(self._target.parent)


@contextmanager
def workspace(target: Path, *, on_wait: Callable[[], None]) -> Iterator[Workspace | None]:
    """Lock the build of ``target``; None when it is there already, perhaps since another build just finished.

    Whatever is left in the workspace at the end is removed.

    Args:
        target: the final folder, ``engines/<id>``.
        on_wait: called once when another process is building the same engine.
    """
    building = target.parent / ".building"
    building.mkdir(parents=True, exist_ok=True)
    remove_dead_builds(target.parent)
    folder = building / target.name
    with (building / f"{target.name}.lock").open("w") as lock:
        if not _try_lock(lock.fileno()):
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            yield None
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield Workspace(folder, target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_dead_builds(engines: Path) -> None:
    """Delete what builds that died left behind; builds that are alive hold their lock."""
    for folder in (engines / ".building").glob("*/"):
        with folder.with_name(f"{folder.name}.lock").open("w") as lock:
            if _try_lock(lock.fileno()):
                shutil.rmtree(folder, ignore_errors=True)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
