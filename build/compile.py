"""The build's step after the checkpoint: what the recipe's target makes of it."""

from __future__ import annotations

from roundhouse.errors import BuildError

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
        BuildError: it could not be compiled.
    """
    target = work.recipe.target
    if target == "torch":
        work.stage.result = "nothing to compile: the torch target runs the checkpoint"
        return None
    if target == "tensorrt":
        from .trtllm.engines import compile_tensorrt

        return compile_tensorrt(work)
    raise BuildError(f"target {target}: this version has no compiler for it", hint="Build for the torch target.")
