"""The build's step after the checkpoint: what the recipe's target makes of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .compiled import Compilation, Compiled
from .hardware import Hardware
from .planner.buildable import require_hardware
from .planner.plan import Plan
from .recipe import Recipe

__all__ = ["Compiler", "compiler_for", "require_machine"]

Compiler = Callable[[Compilation], Compiled | None]
"""Makes of a verified checkpoint what its target needs, and answers the record for the manifest, or None when the target runs
the checkpoint as it is. Raises BuildError (VerifyError where what the target reads is not what was verified)."""


def require_machine(recipe: Recipe, hardware: Hardware) -> None:
    """Look at GPUs before the model is fetched, which may take minutes; :func:`compiler_for` sees the rest.

    Args:
        recipe: what is wanted.
        hardware: that the engine shall run on.

    Raises:
        SetupError: the target compiles on its GPU, and this machine has none, or another kind.
        PlanRefusedError: the target needs a GPU, and the hardware is none.
    """
    if recipe.target == "tensorrt":
        from .trtllm.host import require_gpus

        require_gpus(hardware)
    require_hardware(recipe, hardware)


def compiler_for(plan: Plan) -> Compiler:
    """The compiler of a plan's target. The machine is looked at here, before anything is spent on the checkpoint.

    Raises:
        SetupError: this machine cannot compile for the target, and why.
    """
    if plan.recipe.target == "torch":
        return _nothing
    if plan.recipe.target == "tensorrt":
        from .trtllm.engines import compile_tensorrt, require_tensorrt

        return partial(compile_tensorrt, machine=require_tensorrt(plan))
    from .trtllm.llm_engine import compile_llm

    return compile_llm


def _nothing(work: Compilation) -> None:
    work.stage.result = "nothing to compile: the torch target runs the checkpoint"
