"""A text handed to a child process in memory that only it and its parent have: no command line and no environment shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["handed_over", "take_over"]


@contextmanager
def handed_over(name: str, text: str) -> Iterator[int]:
    """A descriptor for a child to inherit; it may be closed here as soon as the child has started.

    Args:
        name: what the descriptor is called in ``/proc``.
        text: what it holds.
    """
    descriptor = os.memfd_create(name)
    try:
        with open(descriptor, "w", encoding="utf-8", closefd=False) as stream:
            stream.write(text)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def take_over(descriptor: int) -> str:
    """The text, once: it is gone after this, also for a tether between parent and child that holds the descriptor on."""
    with open(descriptor, encoding="utf-8") as stream:
        text = stream.read()
        os.ftruncate(descriptor, 0)
    return text
