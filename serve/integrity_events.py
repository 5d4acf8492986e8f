"""The file of integrity events: every row that a page check stopped, one JSON object a line, for the console and for people.

Engine processes of one home share the file: each event is one write at its end. It may be moved away at any time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from .engine.page_events import IntegrityEvent

__all__ = ["EventsFile", "event_of", "read_events"]

_log = logging.getLogger(__name__)

_MOST_BYTES = 64 * 2**20
"""A fault that never ends must not fill the disk. The log still has the events that come after."""


class EventsFile:
    """Appends one engine's events to a file, which comes to be with the first.

    Args:
        path: the file.
        engine: the engine's id.
        most_bytes: when it is larger, nothing more is written.
    """

    def __init__(self, path: Path, engine: str, *, most_bytes: int = _MOST_BYTES) -> None:
        self._path = path
        self._engine = engine
        self._most_bytes = most_bytes

    def __call__(self, event: IntegrityEvent) -> None:
        """Write an event down. Whatever goes wrong is logged: serving goes on."""
        try:
            self._append(event)
        except Exception as error:  # an event that cannot be written must not end the engine loop
            name = event.event.encode(errors="backslashreplace").decode()  # a log has an encoding, too
            _log.error("integrity event %s could not be written to %s: %s", name, self._path, error)

    def _append(self, event: IntegrityEvent) -> None:
        line = msgspec.json.encode(msgspec.structs.replace(event, engine=self._engine)) + b"\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+b", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size > self._most_bytes:
                _log.error("%s is full: integrity event %s is only in this log; move the file away", self._path, event.event)
                return
            # Somebody's last line may have been cut off where the disk was full. An empty line more does no harm: another
            # process may be in the middle of its write just now.
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                line = b"\n" + line
            written = file.write(line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written")


def event_of(line: bytes) -> IntegrityEvent | None:
    """The event of a line; None when the line was cut off, or is empty."""
    try:
        return msgspec.json.decode(line, type=IntegrityEvent)
    except msgspec.DecodeError:
        return None


def read_events(path: Path) -> Iterator[IntegrityEvent]:
    """Every event of a file, the oldest first; nothing when there is no file. A line that was cut off is left out."""
    try:
        with path.open("rb") as file:
            for line in file:
                if (event := event_of(line)) is not None:
                    yield event
    except (FileNotFoundError, NotADirectoryError):
        return
