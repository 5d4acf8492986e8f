"""What a target's compiler is given, and what it made: a record in the engine's manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from .events import Reporter, Stage
from .planner.plan import Plan
from .recipe import Recipe

__all__ = ["COMPILED", "Compilation", "Compiled", "CompiledGuard"]

COMPILED = "compiled"
"""The folder of an engine that holds what its target compiled."""


class CompiledGuard(BaseModel):
    """A page guard built beside the engine, as an engine of TensorRT: what it is, and the largest tables that it takes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    """In the folder of what was compiled."""
    plugin: Literal["embedded", "library"]
    """Whether the kernel lies in the engine, or ``libroundhouse_kv_page_guard.so`` must be loaded before it."""
    rows: int
    columns: int
    pages: int


class Compiled(BaseModel):
    """What the target needs beside the checkpoint, for which software and GPU it was made, and how it is spread."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str = COMPILED
    """In the engine's folder. `tensorrt`: TensorRT-LLM's ``config.json`` and ``rankN.engine``; `trtllm-pytorch`:
    ``llm.yaml``, the arguments of the LLM API."""
    versions: dict[str, str]
    """``tensorrt_llm``, and ``tensorrt`` where it has a part: what it was compiled with, or written for."""
    compute_capability: str | None
    """Of the GPU that it runs on, such as ``9.0``; None when it runs on any that the plan allows."""
    tensor_parallel: int
    pipeline_parallel: int
    guard: CompiledGuard | None
    """None when the guard is off, and where the guard runs in upstream's own loop."""
    timing_cache: str | None = None
    """In the folder: what TensorRT measured of kernels. Another build's option ``input_timing_cache`` may name it."""
    options: dict[str, JsonValue]
    """The recipe's ``target_options``, nested as upstream takes them."""

    @property
    def world_size(self) -> int:
        """How many ranks, and so GPUs, one deployment has."""
        return self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True)
class Compilation:
    """One engine in the making, whose checkpoint is written and verified: what a target's compiler is given."""

    plan: Plan
    """Legal, and its recipe has everything decided."""
    folder: Path
    """Of the engine: ``checkpoint/`` is there, what is compiled goes to ``compiled/``."""
    stage: Stage
    """Told how far it is, and in a few words what came of it."""
    report: Reporter
    """For warnings."""

    @property
    def recipe(self) -> Recipe:
        """What is wanted, with everything decided."""
        return self.plan.recipe

    @property
    def output(self) -> Path:
        """The folder for what is compiled; the compiler makes it."""
        return self.folder / COMPILED
