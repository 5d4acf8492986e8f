"""What a deployment would run with, and what could not work, said before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from roundhouse.build.engine import Engine, Manifest
from roundhouse.build.hardware import Hardware
from roundhouse.errors import UsageError
from roundhouse.serve.settings import EngineSettings, Overrides

__all__ = ["Foreseen", "foresee"]


class Foreseen(BaseModel):
    """What it would be."""

    model_config = ConfigDict(frozen=True)

    settings: EngineSettings | None
    """None where it cannot run, or nothing can be said."""
    weight_bytes: int
    memory: Hardware | None
    """Of the host, as its worker told when it started."""
    problem: str | None = None
    """Why it cannot run there."""
    hint: str | None = None
    warning: str | None = None
    """Why it may not."""
    warning_hint: str | None = None

    @property
    def taken_bytes(self) -> int:
        """Memory of the host that something else had when its worker started."""
        return 0 if self.memory is None else max(0, self.memory.total_memory - self.memory.free_memory)

    @property
    def most_tokens(self) -> int | None:
        """Tokens that one request can have at most where the pool holds less than the longest request; else None."""
        run = self.settings
        return run.kv.tokens if run is not None and run.kv.tokens < run.max_seq_len else None


def foresee(manifest: dict[str, Any], overrides: Overrides, memory: Hardware | None) -> Foreseen:
    """Look ahead.

    Args:
        manifest: of the engine.
        overrides: what is to be changed of its recipe.
        memory: of the host where it would run; None looks at the engine alone.
    """
    try:
        engine = Engine(Path(), Manifest.model_validate(manifest))
    except ValidationError:
        warning = "This engine was made by another version: what it needs cannot be said before it starts."
        return Foreseen(settings=None, weight_bytes=0, memory=memory, warning=warning)
    if engine.manifest.compiled is not None:
        memory = None  # it takes that of its GPUs, which workers do not tell: they are as it was planned for
    weights = engine.manifest.plan.weight_bytes_per_gpu
    if memory is not None:
        whole = memory.total_memory
    else:
        whole = engine.manifest.plan.hardware.free_memory if engine.manifest.compiled else weights + 2**60
    try:
        settings = EngineSettings.for_engine(engine, overrides, free_memory=whole)
    except UsageError as error:
        return Foreseen(settings=None, weight_bytes=weights, memory=memory, problem=error.message, hint=error.hint)
    if memory is None:
        return Foreseen(settings=settings, weight_bytes=weights, memory=None)
    try:
        settings = EngineSettings.for_engine(engine, overrides, free_memory=memory.free_memory)
    except UsageError as error:
        warning = f"When its worker started, this host had too little free memory: {error.message}"
        return Foreseen(settings=settings, weight_bytes=weights, memory=memory, warning=warning, warning_hint=error.hint)
    return Foreseen(settings=settings, weight_bytes=weights, memory=memory)
