"""All records of one kind in a home, read whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from roundhouse.build.home import Home
from roundhouse.errors import ServeError

from .store import RecordStore

__all__ = ["HomeStore"]

Whole = TypeVar("Whole")


class HomeStore(Generic[Whole]):
    """Records of one kind, each under its id.

    Args:
        home: that they lie in.
        folder: of them, below the home.
        what: one of them, in words, for errors: ``benchmark run``.
        read: a record's folder, whole; raises ServeError when it is damaged.
    """

    def __init__(self, home: Home, folder: str, what: str, read: Callable[[Path], Whole]) -> None:
        self.records = RecordStore(home.path / folder, what)
        self._read = read

    def __iter__(self) -> Iterator[Whole]:
        """Every readable one, the newest first."""
        for folder in self.records:
            try:
                yield self._read(folder)
            except ServeError:
                continue

    def read_all(self) -> tuple[list[Whole], list[str]]:
        """Every one, the newest first, and what is wrong with each that cannot be read."""
        found, damaged = [], []
        for folder in self.records:
            try:
                found.append(self._read(folder))
            except ServeError as error:
                if folder.exists():  # else somebody has just removed it
                    damaged.append(error.message)
        return found, damaged

    def open(self, wanted: str) -> Whole:
        """One by its id, the beginning of one, or ``latest``.

        Raises:
            UsageError: none is called so, or several are.
            ServeError: it is damaged.
        """
        return self._read(self.records.find(wanted))
