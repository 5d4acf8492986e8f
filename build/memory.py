"""How much memory a build takes, said before it starts instead of found out at the end."""

from __future__ import annotations

from typing import Literal

from roundhouse.errors import PlanRefusedError

from .plan import Plan
from .quality import HELD_OUT_TOKENS

__all__ = ["Arithmetic", "build_memory", "choose_arithmetic", "require_memory"]

Arithmetic = Literal["bfloat16", "float32"]
"""What a build computes in. Weights are stored as bf16 either way."""

_LIBRARIES = 750_000_000
"""torch, transformers and ModelOpt, imported: measured with a model of a few megabytes."""


def build_memory(plan: Plan, arithmetic: Arithmetic = "bfloat16") -> int:
    """Bytes a build takes at its highest, rounded up.

    The base, a copy of its state while packing, the dequantized engine, and two sets of logits.
    """
    logits = 2 * 4 * HELD_OUT_TOKENS * plan.shape.vocab
    weights = 5 * plan.base_bytes // 2
    return _LIBRARIES + logits + (2 * weights if arithmetic == "float32" else weights)


def choose_arithmetic(plan: Plan) -> Arithmetic:
    """bfloat16, or float32 on a CPU that only emulates bfloat16 (several times slower) if memory allows."""
    fits = build_memory(plan, "float32") <= plan.hardware.free_memory
    return "float32" if fits and not plan.hardware.native_bf16 else "bfloat16"


def require_memory(plan: Plan) -> None:
    """Refuse a build that would run out of memory.

    Raises:
        PlanRefusedError: with what it needs and what is free.
    """
    needed, free = build_memory(plan), plan.hardware.free_memory
    if needed > free:
        raise PlanRefusedError(
            f"building {plan.shape.architecture} takes about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free",
            reasons=("memory",),
            hint="Nothing was started. Free memory, raise this process's limit, or build on a larger machine.",
        )
