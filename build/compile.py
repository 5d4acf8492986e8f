"""The build's step after the checkpoint: what the recipe's target makes of it."""

from __future__ import annotations

from roundhouse.errors import BuildError

from .compiled import Compilation, Compiled

__all__ = ["compile_engine"]


def compile_engine(work: Compilation) -> Compiled | None:
    """Compile the checkpoint of an engine that is being built for the target of its recipe.

    Returns:
        The record for the manifest, or None when the target runs the checkpoint as it is.

    Raises:
        BuildError: it could not be compiled.
    """
    target = work.recipe.target
    if target == "torch":
        work.stage.result = "nothing to compile: the torch target runs the checkpoint"
        return None
    raise BuildError(f"target {target}: this version has no compiler for it", hint="Build for the torch target.")
