"""All records of one kind in a home: made, found and removed."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from roundhouse.errors import UsageError

from .reader import END, RecordAwayError, began_at, is_held
from .writer import MAKING, RecordWriter

__all__ = ["RecordStore", "new_id"]

_REMOVED = ".removed"
_MAKING_S = 60.0
"""A folder that is being made has its lock long before."""


def new_id() -> str:
    """12 hex digits that nobody had before."""
    return secrets.token_hex(6)


class RecordStore:
    """Records in a folder, each under its id.

    Args:
        folder: made with the first record.
        what: one of them, in words, for errors: ``benchmark run``.
    """

    def __init__(self, folder: Path, what: str) -> None:
        self.folder = folder
        self._what = what

    def create(self, id_: str, header: BaseModel) -> RecordWriter:
        """Begin a record. What killed processes left of theirs goes on the way.

        Raises:
            ServeError: it cannot be written.
        """
        self._sweep()
        return RecordWriter(self.folder / id_, header)

    def __iter__(self) -> Iterator[Path]:
        """The folder of every record, the newest first by when it was measured, wherever that was."""
        if self.folder.is_dir():
            found = ((began_at(each), each) for each in self.folder.iterdir() if each.name[0] != ".")
            there = [(began, each) for began, each in found if began is not None]
            yield from (each for _, each in sorted(there, reverse=True))

    def find(self, wanted: str) -> Path:
        """The folder of a record, by its id, the beginning of one, or ``latest``.

        Raises:
            UsageError: none is called so, or several are.
        """
        records = list(self)
        if wanted == "latest" and records:
            return records[0]
        matches = [each for each in records if wanted and each.name.startswith(wanted)]
        exact = [each for each in matches if each.name == wanted]
        if len(exact or matches) == 1:
            return (exact or matches)[0]
        known = ", ".join(each.name for each in (matches or records)[:10])
        if matches:
            raise UsageError(f"{wanted!r} could be several {self._what}s: {known}", hint="Give more of the id.")
        hint = f"The newest are: {known}" if known else "There is none yet."
        raise UsageError(f"no {self._what} is called {wanted!r}", hint=hint)

    def remove(self, folder: Path) -> None:
        """Delete a record with its raw files. It leaves the list at once, and then the disk. One that is gone already stays so.

        Raises:
            UsageError: it is being measured.
            RecordAwayError: whether it is cannot be told just now.
        """
        if is_held(folder) and not (folder / END).exists():
            raise UsageError(f"{self._what} {folder.name} is being measured", hint="Stop it first.")
        gone = folder.with_name(f".{folder.name}.{new_id()}{_REMOVED}")  # one that was not removed wholly may lie there
        with contextlib.suppress(FileNotFoundError):
            folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        self._sweep()

    def _sweep(self) -> None:
        """Remove what was on its way out, and what was being made by processes that are no more."""
        for left in self.folder.glob(f".*{_REMOVED}"):
            shutil.rmtree(left, ignore_errors=True)
        for left in self.folder.glob(f".*{MAKING}"):
            with contextlib.suppress(FileNotFoundError, RecordAwayError):
                if time.time() - left.stat().st_mtime > _MAKING_S and not is_held(left):
                    shutil.rmtree(left, ignore_errors=True)
