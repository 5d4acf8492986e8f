"""The build's step after the checkpoint: what the recipe's target makes of it."""

from __future__ import annotations

from .compiled import Compilation, Compiled
from .planner.plan import Plan

__all__ = ["compile_engine", "require_compiler"]


def require_compiler(plan: Plan) -> None:
    """See that this machine can compile for the target of a plan, before anything is spent on the checkpoint.

    Raises:
        SetupError: it cannot, and why.
    """
    if plan.recipe.target == "tensorrt":
        from .trtllm.engines import require_tensorrt

        require_tensorrt(plan)


def compile_engine(work: Compilation) -> Compiled | None:
    """Compile the checkpoint of an engine that is being built for the target of its recipe.

    Returns:
        The record for the manifest, or None when the target runs the checkpoint as it is.

    Raises:
        SetupError: this machine cannot compile for the target.
        VerifyError: what the target reads is not what was verified.
        BuildError: it could not be compiled.
    """
    if work.recipe.target == "torch":
        work.stage.result = "nothing to compile: the torch target runs the checkpoint"
        return None
    if work.recipe.target == "tensorrt":
        from .trtllm.engines import compile_tensorrt

        return compile_tensorrt(work)
    from .trtllm.llm_engine import compile_llm

    return compile_llm(work)
