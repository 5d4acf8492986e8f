"""The ranks of an engine under MPI, as :class:`~.link.Link`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from roundhouse.errors import ServeError, SetupError

from .link import Command

__all__ = ["MpiLink"]

T = TypeVar("T")


class MpiLink:
    """One rank of ``mpirun``. It has a communicator of its own: upstream's messages go by another.

    Args:
        size: ranks that the engine has.

    Raises:
        SetupError: mpi4py is not here.
        ServeError: another number of ranks was started.
    """

    def __init__(self, size: int) -> None:
        try:
            world: Any = import_module("mpi4py.MPI").COMM_WORLD
        except ImportError as error:
            raise SetupError(f"mpi4py cannot be imported: {error}", hint="Run this in TensorRT-LLM's container.") from None
        if world.Get_size() != size:
            raise ServeError(
                f"the engine has {size} ranks, and MPI started {world.Get_size()}",
                hint=f"The engine process is started with mpirun -n {size}.",
            )
        self._comm: Any = world.Dup()
        self.rank: int = self._comm.Get_rank()
        self.size = size

    def command(self, command: Command | None = None) -> Command:
        heard: Command = self._comm.bcast(command, root=0)
        return heard

    def exchange(self, value: T) -> list[T]:
        values: list[T] = self._comm.allgather(value)
        return values

    def send(self, value: object, rank: int) -> None:
        self._comm.send(value, dest=rank)

    def receive(self, rank: int) -> object:
        value: object = self._comm.recv(source=rank)
        return value
