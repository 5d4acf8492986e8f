"""Writing the folder of a record."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel

from roundhouse.errors import BenchmarkStoppedError, ServeError

from ..disk import write_whole, writing
from .raw import RawFiles
from .reader import END, HEADER, LOCK, EndState, RecordEnd

__all__ = ["MAKING", "RecordWriter"]

MAKING = ".new"
"""Ends the name of a folder that nobody can see yet."""


class RecordWriter:
    """Writes one record. As a context manager it is ended on exit: finished, cancelled (Ctrl-C, or asked to
    end) or failed, by what was raised.

    Args:
        folder: of the record; its parent is made, itself it must not exist.
        header: what is measured.

    Raises:
        ServeError: it cannot be written.
    """

    def __init__(self, folder: Path, header: BaseModel) -> None:
        self.folder = folder
        self._files: dict[str, int] = {}
        self._lock = -1
        making = folder.with_name(f".{folder.name}{MAKING}")
        with writing("a record", folder.parent, variable="ROUNDHOUSE_HOME"):
            making.mkdir(parents=True)
            try:
                self._lock = os.open(making / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                fcntl.flock(self._lock, fcntl.LOCK_EX)  # before anybody can see the folder, or take it for a leftover
                write_whole(making / HEADER, _json(header))
                making.rename(folder)
            except BaseException:
                self.close()
                shutil.rmtree(making, ignore_errors=True)
                raise
        self.raw = RawFiles(folder / "raw")
        """Files of whatever measures."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self.end("finished")
                return
            with contextlib.suppress(ServeError):  # a full disk, say: what was raised before is what went wrong
                if isinstance(error, KeyboardInterrupt | BenchmarkStoppedError):
                    self.end("cancelled")
                elif isinstance(error, Exception):
                    self.end("failed", getattr(error, "message", None) or f"{type(error).__name__}: {error}")
        finally:
            self.close()

    def add(self, name: str, *lines: BaseModel, durable: bool = True) -> None:
        """Write something down.

        Args:
            name: under which it is read again.
            lines: what came of the measurement.
            durable: whether to wait until it is on disk.

        Raises:
            ServeError: it cannot be written.
        """
        with writing("a record", self.folder, variable="ROUNDHOUSE_HOME"):
            if name not in self._files:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._files[name] = os.open(self.folder / f"{name}.jsonl", flags, 0o644)
            _append(self._files[name], "".join(f"{line.model_dump_json()}\n" for line in lines).encode())
            if durable:
                os.fsync(self._files[name])

    def end(self, state: EndState, problem: str | None = None, *, at: datetime | None = None) -> None:
        """Say how it ended; what is said first holds.

        Args:
            state: in a word.
            problem: why it failed, in a sentence.
            at: when, for a record that was measured elsewhere before; now when None.
        """
        if not (self.folder / END).exists():
            with writing("a record", self.folder, variable="ROUNDHOUSE_HOME"):
                end = RecordEnd(state=state, at=at or datetime.now(UTC), problem=problem)
                write_whole(self.folder / END, _json(end))

    def close(self) -> None:
        """Let go of it. Without :meth:`end` it counts as interrupted. May be called twice."""
        for descriptor in (*self._files.values(), self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._files, self._lock = {}, -1


def _append(descriptor: int, data: bytes) -> None:
    """Write all of it or nothing: half a line would spoil the next one, if that can be written again."""
    before = os.fstat(descriptor).st_size
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, before)
        raise


def _json(content: BaseModel) -> bytes:
    return content.model_dump_json(indent=1).encode()
