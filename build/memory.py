"""How much memory a build takes, said before it starts instead of found out at the end."""

from __future__ import annotations

from roundhouse.errors import PlanRefusedError

from .plan import Plan
from .quality import HELD_OUT_TOKENS

__all__ = ["build_memory", "require_memory"]

_LIBRARIES = 750_000_000
"""torch, transformers and ModelOpt, imported: measured with a model of a few megabytes."""


def build_memory(plan: Plan) -> int:
    """Bytes a build takes at its highest, rounded up.

    The base, a copy of its state while packing, the dequantized engine, and two sets of logits.
    """
    logits = 2 * 4 * HELD_OUT_TOKENS * plan.shape.vocab
    return _LIBRARIES + 5 * plan.base_bytes // 2 + logits


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
