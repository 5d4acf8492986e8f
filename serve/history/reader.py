"""Reading the folder of a record, also while it is being written or after whoever wrote it was killed."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from roundhouse.errors import ServeError

from .moments import Moment
from .record import Record

__all__ = [
    "END",
    "HEADER",
    "LOCK",
    "EndState",
    "Outcome",
    "RecordAwayError",
    "RecordEnd",
    "RecordState",
    "began_at",
    "is_held",
    "read_end",
    "read_header",
    "read_lines",
    "read_outcome",
    "require_there",
    "state_of",
]

HEADER, END, LOCK = "header.json", "end.json", "lock"

EndState = Literal["finished", "failed", "cancelled"]
RecordState = Literal["running", "finished", "failed", "cancelled", "interrupted"]
"""``interrupted``: whoever measured is gone without a word."""

Line = TypeVar("Line", bound=BaseModel)


class RecordAwayError(ServeError):
    """A record that cannot be read just now: a disk that fails, a home that is away, too many open files.

    That says nothing of what it holds: unlike one that is damaged, it may be as it should be when it is read again.
    """


_NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""What a disk says that is in order: the file is not there, or is none."""

_BEGAN = re.compile(rb'^ "began_at": "([^"]+)"', re.MULTILINE)
_BEGINNING = 4096
"""Bytes of a header that are looked through: a manifest makes some of them long, and begins later."""


class RecordEnd(Record):
    """``end.json``."""

    state: EndState
    at: Moment
    """UTC."""
    problem: str | None = None
    """Why it failed, in a sentence."""


def read_header(folder: Path, kind: type[Line]) -> Line:
    """What a record is about.

    Raises:
        RecordAwayError: it cannot be read just now.
        ServeError: there is no such record, or it is damaged or of another version.
    """
    path = folder / HEADER
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise _unreadable(path, error) from None


def began_at(folder: Path) -> datetime | None:
    """When what a record is about was measured, UTC; by the header's file where that does not say. None without a header."""
    path = folder / HEADER
    try:
        with path.open("rb") as header:
            told = _BEGAN.search(header.read(_BEGINNING))
            written = datetime.fromtimestamp(os.fstat(header.fileno()).st_mtime, UTC)
    except OSError:
        return None
    try:
        found = written if told is None else datetime.fromisoformat(told[1].decode())
    except ValueError:
        return written
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def read_end(folder: Path) -> RecordEnd | None:
    """How it ended; None while it goes on, and when it was interrupted.

    Raises:
        RecordAwayError: it cannot be read just now.
        ServeError: what is there is damaged or of another version.
    """
    path = folder / END
    try:
        return RecordEnd.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise _unreadable(path, error) from None


@dataclass(frozen=True)
class Outcome:
    """What became of a record, as of one moment."""

    state: RecordState
    ended_at: datetime | None
    """UTC; None while it goes on, and when it was interrupted."""
    problem: str | None
    """Why it failed, in a sentence."""


def read_outcome(folder: Path) -> Outcome:
    """What became of it.

    Raises:
        RecordAwayError: it cannot be read just now.
        ServeError: how it ended is damaged.
    """
    # The lock first: whoever lets go of it has written the end before.
    held = is_held(folder)
    end = read_end(folder)
    if end is not None:
        return Outcome(end.state, end.at, end.problem)
    return Outcome("running" if held else "interrupted", None, None)


def state_of(folder: Path) -> RecordState:
    """What became of it, in a word.

    Raises:
        RecordAwayError: it cannot be read just now.
        ServeError: how it ended is damaged.
    """
    return read_outcome(folder).state


def is_held(folder: Path) -> bool:
    """Whether a process is measuring it now.

    Raises:
        RecordAwayError: that cannot be told just now.
    """
    path = folder / LOCK
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (*_NOT_THERE, PermissionError):
        return False
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise _unreadable(path, error) from None
    else:
        return False
    finally:
        os.close(descriptor)


def read_lines(folder: Path, name: str, kind: type[Line], *, skip: int = 0) -> Iterator[Line]:
    """What came of it under a name, oldest first. A last line that is not whole, of a killed process, is left out.

    Args:
        folder: of the record.
        name: such as ``points``.
        kind: what each line is.
        skip: lines that are known already.

    Raises:
        RecordAwayError: the file cannot be read just now.
        ServeError: a whole line is not what it should be.
    """
    path = folder / f"{name}.jsonl"
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines):
                if number >= skip and line.endswith(b"\n"):
                    yield kind.model_validate_json(line)
    except FileNotFoundError:
        return
    except (OSError, ValidationError) as error:
        raise _unreadable(path, error) from None


def require_there(folder: Path) -> None:
    """See that a record that was read is still there: of one that was removed meanwhile, parts may have been missing.

    Raises:
        RecordAwayError: it is gone.
    """
    if not os.path.exists(folder):
        raise RecordAwayError(f"{folder} was removed meanwhile")


def _unreadable(path: Path, error: OSError | ValidationError) -> ServeError:
    """In one line."""
    if isinstance(error, OSError):
        # A file that is missing is damage where its folder is there: else the home may have gone.
        kind = ServeError if isinstance(error, _NOT_THERE) and os.path.isdir(path.parent) else RecordAwayError
        return kind(f"{path} cannot be read: {error.strerror or error}")
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    told = f"{where}: {first['msg']}" if where else first["msg"]
    return ServeError(f"{path} is damaged or of another version of Roundhouse: {told}")
