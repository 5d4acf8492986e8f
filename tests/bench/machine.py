"""What was measured on: the machine, and what the engine runs with on it."""

from __future__ import annotations

import time
from typing import Any

from roundhouse.build.hardware import this_machine
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.measurement.processes import look

__all__ = ["describe", "idle_cores", "machine_line"]


def describe(loop: EngineLoop) -> dict[str, Any]:
    """What was measured on, and what the engine ran with."""
    import torch

    hardware = this_machine()
    runtime: Any = loop._runtime
    linears = {type(module).__name__ for module in runtime._model.modules() if type(module).__name__.endswith("Linear")}
    return {
        "cpu": hardware.name,
        "cores": hardware.cores,
        "native bf16": hardware.native_bf16,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "attention": runtime.attention.name,
        "linears": sorted(linears),
    }


def machine_line(machine: dict[str, Any]) -> str:
    """The same for people."""
    bf16 = "with" if machine["native bf16"] else "without"
    return (
        f"{machine['cpu']}, {machine['cores']} cores {bf16} bf16 instructions, torch {machine['torch']}; "
        f"attention {machine['attention']}, linears {', '.join(machine['linears'])}; "
        f"everything idle together took {machine['idle cores']:.2f} cores"
    )


def idle_cores(seconds: float) -> float:
    """Cores that this process and its descendants take while nobody asks them for anything."""
    before = look()
    time.sleep(seconds)
    after = look()
    return (after.ours - before.ours) / (after.wall - before.wall)
