"""How much memory a build takes, said before it starts instead of found out at the end."""

from __future__ import annotations

from typing import Literal

from roundhouse.errors import PlanRefusedError

from .hardware import Hardware
from .planner.plan import Plan
from .quality import HELD_OUT_TOKENS
from .recipe import Recipe

__all__ = ["Arithmetic", "build_memory", "choose_arithmetic", "require_memory"]

Arithmetic = Literal["bfloat16", "float32"]
"""What a build computes in. Weights are stored as bf16 either way."""

_LIBRARIES = 750_000_000
"""torch, transformers and ModelOpt, imported: measured with a model of a few megabytes."""


def build_memory(plan: Plan, arithmetic: Arithmetic) -> int:
    """Bytes a build takes at its highest, rounded up.

    The base, a copy of its state while packing, the dequantized engine, and two sets of logits.
    """
    logits = 2 * 4 * HELD_OUT_TOKENS * plan.shape.vocab
    weights = 5 * plan.base_bytes // 2
    return _LIBRARIES + logits + (2 * weights if arithmetic == "float32" else weights)


def choose_arithmetic(recipe: Recipe, machine: Hardware) -> Arithmetic:
    """What the recipe says; for ``auto``, float32 on a CPU that only emulates bfloat16, several times slower.

    Memory has no say: the choice changes scales, so it is part of the engine's id.
    """
    if recipe.calibration.arithmetic != "auto":
        return recipe.calibration.arithmetic
    return "bfloat16" if machine.native_bf16 else "float32"


def require_memory(plan: Plan, arithmetic: Arithmetic, machine: Hardware) -> None:
    """Refuse a build that would run out of memory of the machine that quantizes, whatever the engine will run on.

    Raises:
        PlanRefusedError: with what it needs and what is free.
    """
    needed, free = build_memory(plan, arithmetic), machine.free_memory
    if needed > free:
        hint = "Nothing was started. Free memory, raise this process's limit, or build on a larger machine."
        if arithmetic == "float32":
            hint += " `calibration: {arithmetic: bfloat16}` halves it, and takes several times as long on this CPU."
        raise PlanRefusedError(
            f"building {plan.shape.architecture} takes about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free",
            reasons=("memory",),
            hint=hint,
        )
