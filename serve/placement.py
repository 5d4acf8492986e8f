"""Engines that share a server: under which names, and who gets how much memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roundhouse.build.engine import Engine
from roundhouse.errors import UsageError

from .free_memory import FreeMemory
from .runtimes import fitted_settings
from .settings import EngineSettings, Overrides
from .triton.repository import model_name, require_model_name

__all__ = ["PlacedEngine", "place_engines"]


@dataclass(frozen=True)
class PlacedEngine:
    """An engine, the name it is served under, and what to change of its recipe."""

    engine: Engine
    name: str
    overrides: Overrides


def place_engines(
    engines: Sequence[Engine], overrides: Overrides, *, memory: FreeMemory, names: Sequence[str] | None = None
) -> list[PlacedEngine]:
    """Name the engines and see that each can run beside the others.

    One engine alone sizes its KV pool when it starts. Of several, each is told its size, in order, from what the ones before
    it leave: they start at the same time and would all count the same memory as free.

    Args:
        engines: at least one.
        overrides: what to change of each one's recipe.
        memory: what there is; what the engines take is taken from it.
        names: what each is served as; None takes their own names.

    Raises:
        UsageError: one cannot run like this, all of them do not fit, two have the same name, or a name is none for Triton.
        EngineError: what was compiled of one cannot be read.
        SetupError: one needs more GPUs than this machine has.
    """
    placed: list[PlacedEngine] = []
    for engine, name in zip(engines, names or [model_name(engine) for engine in engines], strict=True):
        require_model_name(name)
        if any(name == other.name for other in placed):
            raise UsageError(f"two engines would be served as {name}", hint="Give one of them another name in its recipe.")
        settings = fitted_settings(engine, EngineSettings.for_engine(engine, overrides, free_memory=memory.left_for(engine)))
        memory.take(engine, engine.manifest.plan.weight_bytes_per_gpu + settings.kv.bytes)
        own = overrides if len(engines) == 1 else _with_kv_bytes(overrides, settings.kv.bytes)
        placed.append(PlacedEngine(engine, name, own))
    return placed


def _with_kv_bytes(overrides: Overrides, kv_bytes: int) -> Overrides:
    memory = {"memory_fraction": None, "kv_cache_tokens": None, "kv_cache_bytes": kv_bytes}
    return overrides.model_copy(update=memory)
