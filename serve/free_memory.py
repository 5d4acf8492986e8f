"""How much memory an engine may take where it runs: this machine's, or that of its GPUs."""

from __future__ import annotations

from roundhouse.build.engine import Engine
from roundhouse.build.hardware import this_machine
from roundhouse.build.trtllm.host import devices_here
from roundhouse.errors import SetupError

from .measurement.gpus import Gpus, find_gpus

__all__ = ["free_memory_for"]


def free_memory_for(engine: Engine, gpus: Gpus | None = None) -> int:
    """Bytes that may still be taken; of several GPUs, on the fullest one.

    Args:
        engine: what is to run. One that was compiled for GPUs takes the first ones, one for each rank.
        gpus: those that processes of this machine may use when None, in the order that they see them in.

    Raises:
        SetupError: the engine needs more GPUs than this machine has.
    """
    compiled = engine.manifest.compiled
    if compiled is None:
        return this_machine().free_memory
    free = (gpus or find_gpus(devices=devices_here())).free_memory()
    if len(free) < compiled.world_size:
        raise SetupError(
            f"engine {engine.manifest.id} runs on {compiled.world_size} GPUs, and {len(free)} are seen here",
            hint="Run it where they are, with NVIDIA's driver and the package nvidia-ml-py.",
        )
    return min(free[: compiled.world_size])
