"""What an engine would run with on the machine that its plan is of: an export is refused where `roundhouse serve` would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundhouse.errors import UsageError

from ..runtimes import fitted_settings
from ..settings import EngineSettings, Overrides

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

__all__ = ["planned_settings"]


def planned_settings(engine: Engine, overrides: Overrides) -> EngineSettings:
    """Settings of an engine that our own loop runs.

    Args:
        engine: of the target `torch` or `tensorrt`.
        overrides: what to change of its recipe.

    Raises:
        UsageError: the combination is impossible, there is no room for it, it is beyond what the engine was compiled for, or
            it is for measuring only.
        EngineError: what was compiled cannot be read.
    """
    if overrides.kernels is not None:
        raise UsageError("--kernels is for measuring; `roundhouse serve` takes native kernels where they can be had")
    free = engine.manifest.plan.hardware.free_memory
    return fitted_settings(engine, EngineSettings.for_engine(engine, overrides, free_memory=free))
