"""What an engine would run with on the machine that its plan is of: an export is refused where `roundhouse serve` would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        UsageError: the combination is impossible, there is no room for it, or it is beyond what the engine was compiled for.
        EngineError: what was compiled cannot be read.
    """
    free = engine.manifest.plan.hardware.free_memory
    return fitted_settings(engine, EngineSettings.for_engine(engine, overrides, free_memory=free))
