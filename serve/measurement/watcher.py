"""Whoever hears how a measurement goes, and may end it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Protocol

__all__ = ["Watcher"]


class Watcher(Protocol):
    """Hears how a measurement goes: a terminal, a job."""

    stopping: threading.Event
    """Set when it is to end."""

    def began(self, folder: Path) -> None:
        """The folder of a record is there."""
        ...

    def stage(self, name: str, what: str) -> None:
        """A part begins: its name in a word, and what it does in words."""
        ...

    def progress(self, fraction: float) -> None:
        """How much of the part under way is done, from 0 to 1."""
        ...

    def say(self, line: str) -> None:
        """Something that a reader of the log wants to know."""
        ...
