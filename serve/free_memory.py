"""How much memory an engine may take where it runs: this machine's, or that of its GPUs."""

from __future__ import annotations

from roundhouse.build.engine import Engine
from roundhouse.build.hardware import this_machine
from roundhouse.build.trtllm.host import devices_here
from roundhouse.errors import SetupError

from .measurement.gpus import Gpus, find_gpus

__all__ = ["FreeMemory", "free_memory_for"]


class FreeMemory:
    """What several engines that are started together may take: of this machine, and of each GPU. Each is read when first asked.

    Args:
        host: bytes; those of this machine when None.
        gpus: those that processes of this machine may use when None, in the order that they see them in.
    """

    def __init__(self, host: int | None = None, gpus: Gpus | None = None) -> None:
        self._host = host
        self._gpus = gpus
        self._each: list[int] | None = None

    def left_for(self, engine: Engine) -> int:
        """Bytes that may still be taken; of several GPUs, on the fullest one.

        Args:
            engine: what is to run. One that was compiled for GPUs takes the first ones, one for each rank.

        Raises:
            SetupError: the engine needs more GPUs than this machine has.
        """
        compiled = engine.manifest.compiled
        if compiled is None:
            return self._of_host()
        free = self._of_gpus()
        if len(free) < compiled.world_size:
            raise SetupError(
                f"engine {engine.manifest.id} runs on {compiled.world_size} GPUs, and {len(free)} are seen here",
                hint="Run it where they are, with NVIDIA's driver and the package nvidia-ml-py.",
            )
        return min(free[: compiled.world_size])

    def take(self, engine: Engine, taken: int) -> None:
        """Let an engine have so many bytes, on each of its GPUs if it was compiled for GPUs."""
        compiled = engine.manifest.compiled
        if compiled is None:
            self._host = self._of_host() - taken
        else:
            self._each = [free - taken * (at < compiled.world_size) for at, free in enumerate(self._of_gpus())]

    def _of_host(self) -> int:
        if self._host is None:
            self._host = this_machine().free_memory
        return self._host

    def _of_gpus(self) -> list[int]:
        if self._each is None:
            self._each = list((self._gpus or find_gpus(devices=devices_here())).free_memory())
        return self._each


def free_memory_for(engine: Engine, gpus: Gpus | None = None) -> int:
    """Bytes that one engine alone may take, as :meth:`FreeMemory.left_for`.

    Raises:
        SetupError: the engine needs more GPUs than this machine has.
    """
    return FreeMemory(gpus=gpus).left_for(engine)
