"""A lock that one process holds for its whole life, and that others can look at without touching it.

An open-file-description lock: the kernel lets go when its process ends, however that comes about, and asking who holds it takes
nothing, so that somebody who only looks can never be in the way of who wants it.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

__all__ = ["is_held", "take"]

_LOCK = struct.Struct("hhqqi4x")
"""``struct flock`` of 64-bit Linux: kind, whence, start, length, process."""


def take(path: Path) -> int | None:
    """Take the lock; the descriptor that holds it, or None when somebody else has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_held(path: Path) -> bool:
    """Whether a process has it now."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind: int = _LOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))[0]
        return kind != fcntl.F_UNLCK
    finally:
        os.close(descriptor)
