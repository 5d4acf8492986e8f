"""How the ranks of an engine talk: rank 0 says what is done next, and all of them hear it and do it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from ...engine.arrays import Int32Array
from .steps import Step

__all__ = ["Begin", "Check", "Command", "End", "Forward", "Link", "NoLink", "Prepare"]

T = TypeVar("T")


@dataclass(frozen=True)
class Begin:
    """Load the engine and make room for pages. Every rank answers when it has."""

    pages: int


@dataclass(frozen=True)
class Prepare:
    """A step comes: put its tables on the device."""

    step: Step


@dataclass(frozen=True)
class Check:
    """Compare the step's tags with these, int32 [P]. Every rank answers, and all get all answers."""

    page_tags: Int32Array


@dataclass(frozen=True)
class Forward:
    """Run the step of this number."""

    step: int


@dataclass(frozen=True)
class End:
    """There is nothing more to do."""


Command = Begin | Prepare | Check | Forward | End


class Link(Protocol):
    """One rank's end. Calls are collective: every rank makes the same ones in the same order, but for the last two."""

    rank: int
    size: int

    def command(self, command: Command | None = None) -> Command:
        """Say what is done next (rank 0), or hear it (None, every other rank)."""
        ...

    def exchange(self, value: T) -> list[T]:
        """Every rank's value, in order of rank."""
        ...

    def send(self, value: object, rank: int) -> None:
        """Give a value to one rank, which receives it."""
        ...

    def receive(self, rank: int) -> object:
        """Wait for what one rank sends."""
        ...


class NoLink:
    """The null twin: an engine of one rank."""

    rank, size = 0, 1

    def command(self, command: Command | None = None) -> Command:
        return command or End()

    def exchange(self, value: T) -> list[T]:
        return [value]

    def send(self, value: object, rank: int) -> None:
        raise AssertionError("a single rank has nobody to send to")

    def receive(self, rank: int) -> object:
        raise AssertionError("a single rank has nobody to receive from")
