"""All records of one kind in a home: made, found and removed."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from roundhouse.errors import UsageError

from .reader import HEADER, state_of
from .writer import RecordWriter

__all__ = ["RecordStore", "new_id"]


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
        """Begin a record.

        Raises:
            ServeError: it cannot be written.
        """
        return RecordWriter(self.folder / id_, header)

    def __iter__(self) -> Iterator[Path]:
        """The folder of every record, the newest first by when it was begun."""
        if self.folder.is_dir():
            there = [each for each in self.folder.iterdir() if each.name[0] != "." and (each / HEADER).is_file()]
            yield from sorted(there, key=lambda each: (each / HEADER).stat().st_mtime_ns, reverse=True)

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
        hint = f"The newest are: {known}" if known else None
        raise UsageError(f"no {self._what} is called {wanted!r}", hint=hint)

    def remove(self, folder: Path) -> None:
        """Delete a record with its raw files. It leaves the list at once, and then the disk.

        Raises:
            UsageError: it is being measured.
        """
        if state_of(folder) == "running":
            raise UsageError(f"{self._what} {folder.name} is being measured", hint="Stop it first.")
        gone = folder.with_name(f".{folder.name}.removed")
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
