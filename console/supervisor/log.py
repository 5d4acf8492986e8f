"""A deployment's log: whole lines, numbered from its beginning, in at most two files of bounded size.

A file is called after the number of its first line. So a reader that knows how many lines it has needs to remember nothing
else: it finds the next one whatever was rotated, and after a restart too.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

__all__ = ["LogReader", "LogWriter"]

_MOST_BYTES = 4 * 2**20
_LONGEST_LINE = 4000
_NAME = re.compile(r"server-(\d+)\.log")


class LogWriter:
    """Writes the log, and has everything that any library prints written there as well.

    Args:
        folder: where the log is; one that is there goes on.
        most_bytes: of a file; then another one begins, and only the one before is kept.
        instead_of: descriptors that lead into the log from now on.
    """

    def __init__(self, folder: Path, *, most_bytes: int = _MOST_BYTES, instead_of: tuple[int, ...] = (1, 2)) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._instead_of = instead_of
        self._lock = threading.Lock()
        found = _files(folder)
        self._first = found[-1][0] if found else 1
        self._descriptor = self._open()

    def say(self, line: str) -> None:
        """Add a line. May be called from any thread."""
        with self._lock:
            os.write(self._descriptor, (line[:_LONGEST_LINE].replace("\n", " ") + "\n").encode(errors="replace"))
            if os.fstat(self._descriptor).st_size > self._most_bytes:
                self._rotate()

    def _open(self) -> int:
        path = self._folder / f"server-{self._first}.log"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for other in self._instead_of:
            os.dup2(descriptor, other)
        return descriptor

    def _rotate(self) -> None:
        full, before = self._folder / f"server-{self._first}.log", self._descriptor
        self._first += sum(1 for _ in _lines(full, ended=True))
        self._descriptor = self._open()
        os.close(before)
        for _, path in _files(self._folder)[:-2]:
            path.unlink(missing_ok=True)


class LogReader:
    """Reads the log of a folder as it grows.

    Args:
        folder: where the log is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: Path | None = None
        self._offset, self._next = 0, 1
        """Where in the file it is, and the number of the line that begins there."""

    def after(self, number: int, *, most: int) -> list[tuple[int, str]]:
        """The whole lines after the one of this number, each with its own: of many, the last ``most``."""
        files = _files(self._folder)
        begin = max((index for index, (first, _) in enumerate(files) if first <= number + 1), default=0)
        lines: deque[tuple[int, str]] = deque(maxlen=most)
        for first, path in files[begin:]:
            if self._file != path or self._next > number + 1:
                self._file, self._offset, self._next = path, 0, first
            for line in _lines(path, ended=path != files[-1][1], offset=self._offset):
                if self._next > number:
                    lines.append((self._next, line.decode(errors="replace").rstrip("\r\n")[:_LONGEST_LINE]))
                self._offset += len(line)
                self._next += 1
        return list(lines)


def _files(folder: Path) -> list[tuple[int, Path]]:
    """The files of a log with the numbers of their first lines, the oldest first."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted((int(match[1]), folder / match[0]) for match in map(_NAME.fullmatch, names) if match)


def _lines(path: Path, *, ended: bool, offset: int = 0) -> Iterator[bytes]:
    """The lines of a file from an offset on; the last one only when it is whole or nothing more comes."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for line in file:
                if line.endswith(b"\n") or ended:
                    yield line
    except FileNotFoundError:  # rotated away just now
        return
