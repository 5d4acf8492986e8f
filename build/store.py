"""All engines of a home folder: listed, found by what people call them, removed."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from roundhouse.errors import EngineError, UsageError

from .engine import MANIFEST, Engine, read_manifest
from .home import Home

__all__ = ["EngineStore"]


class EngineStore:
    """All engines of one home folder: ``<home>/engines/<id>``."""

    def __init__(self, home: Home) -> None:
        self.folder = home.engines

    def path(self, engine_id: str) -> Path:
        """Where the engine with this id is, or would be."""
        return self.folder / engine_id

    def open(self, engine_id: str) -> Engine:
        """Open the engine with this id, whatever else is called so.

        Raises:
            UsageError: there is none.
            EngineError: it is damaged, is another's folder, or lies elsewhere: its place is a link.
        """
        folder = self.path(engine_id)
        if engine_id[:1] in ("", ".") or "/" in engine_id or not folder.is_dir():
            raise UsageError(f"no engine has the id {engine_id!r}")
        engine = _opened(folder)
        if engine.manifest.id != engine_id:
            raise EngineError(f"{folder} holds another engine: {engine.manifest.id}")
        return engine

    def __iter__(self) -> Iterator[Engine]:
        """Every readable engine, newest first; damaged ones are left out (see :meth:`damaged`)."""
        engines = [engine for _, engine in self._scan() if isinstance(engine, Engine)]
        return iter(sorted(engines, key=lambda engine: engine.manifest.created, reverse=True))

    def damaged(self) -> list[tuple[str, EngineError]]:
        """Folders that should be engines and cannot be opened, with the reason."""
        return [(name, engine) for name, engine in self._scan() if isinstance(engine, EngineError)]

    def find(self, wanted: str) -> Engine:
        """Open an engine by folder path, id, unique id prefix or name.

        Raises:
            UsageError: nothing matches, or several do.
            EngineError: the engine is there but damaged.
        """
        if "/" in wanted or (Path(wanted) / MANIFEST).exists():
            return Engine.open(Path(wanted))
        exact = self.path(wanted)
        if wanted and exact.is_dir() and not wanted.startswith("."):
            return _opened(exact)
        matches = {id_: name for id_, name in self._names().items() if wanted and (name == wanted or id_.startswith(wanted))}
        if len(matches) == 1:
            return _opened(self.path(*matches))
        known = ", ".join(f"{name} ({id_})" for id_, name in (matches or self._names()).items())
        problem = f"{wanted!r} could be several engines: " if matches else f"no engine is called {wanted!r}"
        raise UsageError(
            problem + (known if matches else f"; here are: {known}" if known else ""),
            hint=None if known else "`roundhouse build MODEL` makes one.",
        )

    def locate(self, wanted: str) -> Path:
        """The folder of an engine of this store, found as :meth:`find` does; a damaged one by its whole id.

        Raises:
            UsageError: nothing matches, or the engine lies elsewhere.
        """
        damaged = {name for name, _ in self.damaged()}
        named = [id_ for id_, name in self._names().items() if id_ in damaged and name == wanted]
        if wanted in damaged or len(named) == 1:
            return self.path(wanted if wanted in damaged else named[0])
        folder = self.find(wanted).folder
        if folder.parent.resolve() != self.folder.resolve():
            raise UsageError(f"{folder} is not in {self.folder}; delete the folder yourself")
        return folder

    def remove(self, folder: Path) -> None:
        """Delete a folder that :meth:`locate` answered. It leaves the list at once, and then the disk.

        Raises:
            UsageError: the engine is running.
        """
        self.withdraw(folder)
        self.delete_withdrawn()

    def withdraw(self, folder: Path) -> None:
        """The first half of :meth:`remove`, and all that others see of it: the engine is no longer there.

        Raises:
            UsageError: the engine is running.
        """
        _require_not_running(folder)
        removed = self.folder / ".removed"
        removed.mkdir(exist_ok=True)
        folder.rename(removed / f"{folder.name}-{time.time_ns()}")

    def delete_withdrawn(self) -> None:
        """The second half, which takes as long as the disk does. What an earlier, killed removal left is deleted as well."""
        for folder in (self.folder / ".removed").glob("*"):
            if folder.is_symlink():  # what it leads to is not ours
                folder.unlink(missing_ok=True)
            else:
                shutil.rmtree(folder, ignore_errors=True)

    def _names(self) -> dict[str, str]:
        """The name of every engine whose manifest can be read, damaged or not, by id."""
        names = {}
        for folder_name, _ in self._scan():
            with contextlib.suppress(EngineError):
                names[folder_name] = read_manifest(self.path(folder_name)).name
        return names

    def _scan(self) -> Iterator[tuple[str, Engine | EngineError]]:
        if not self.folder.is_dir():
            return
        for folder in sorted(self.folder.iterdir()):
            if folder.name.startswith(".") or not folder.is_dir():
                continue
            try:
                yield folder.name, _opened(folder)
            except EngineError as error:
                yield folder.name, error


def _opened(folder: Path) -> Engine:
    """An engine of a store.

    Raises:
        EngineError: it is damaged, or lies elsewhere.
    """
    if folder.is_symlink():
        raise EngineError(f"{folder} is a link; an engine lies in the home itself", hint="Copy or move the engine there.")
    return Engine.open(folder)


def _require_not_running(folder: Path) -> None:
    try:
        with (folder / MANIFEST).open() as manifest:
            fcntl.flock(manifest, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return
    except BlockingIOError:
        raise UsageError(f"engine {folder.name} is running", hint="Stop its server first.") from None
