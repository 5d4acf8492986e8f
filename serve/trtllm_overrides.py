"""What may be changed of an engine's LLM arguments when it is deployed: nothing of it is compiled in."""

from __future__ import annotations

from typing import Any

from roundhouse.build.merging import merged
from roundhouse.build.planner.kv_budget import kv_budget
from roundhouse.build.planner.plan import Plan
from roundhouse.build.planner.support import allowed_page_tokens, traits_of
from roundhouse.build.recipe import Recipe
from roundhouse.build.trtllm.llm_arguments import llm_arguments
from roundhouse.errors import UsageError

from .options import OptionNames
from .settings import Overrides, require_room

__all__ = ["changed_recipe", "overridden"]

_MEMORY = ("memory_fraction", "kv_cache_bytes", "kv_cache_tokens")
_KEYS = ("page_tokens", "max_batch_size", "max_seq_len", "max_num_tokens", *_MEMORY)
_NOT_ITS = ("guard_sample", "max_waiting", "kernels")
"""Of our own loop, which does not run here."""
_REUSE = "enable_block_reuse"


def overridden(arguments: dict[str, Any], plan: Plan, overrides: Overrides) -> dict[str, Any]:
    """An engine's arguments with overrides; the guard is left to who places them.

    Args:
        arguments: that were written when the engine was built. Only what an override changes is derived anew.
        plan: the engine's.
        overrides: what to change of its recipe.

    Raises:
        UsageError: an override that this target has no use for, or that the model or the GPU does not take.
    """
    given = overrides.model_dump(exclude_none=True)
    if useless := [OptionNames().of(name) for name in _NOT_ITS if name in given]:
        raise UsageError(f"{', '.join(useless)}: TensorRT-LLM runs its own loop on trtllm-pytorch, which has no such option")
    recipe = changed_recipe(plan.recipe, overrides)
    if recipe != plan.recipe:
        before, after = llm_arguments(plan), llm_arguments(_replanned(plan, recipe))
        changed = {key: value for key, value in after.items() if before.get(key) != value}
        arguments = {key: changed.get(key, value) for key, value in arguments.items()}
    if overrides.prefix_reuse is not None:
        arguments = merged(arguments, {"kv_cache_config": {_REUSE: overrides.prefix_reuse}})
    return arguments


def changed_recipe(recipe: Recipe, overrides: Overrides) -> Recipe:
    """A recipe with overridden sizes: a memory key takes the place of the one that it has."""
    given = overrides.model_dump(exclude_none=True)
    changes = {key: given[key] for key in _KEYS if key in given}
    kept = dict.fromkeys(_MEMORY) if any(key in changes for key in _MEMORY) else {}
    return recipe.model_copy(update={**kept, **changes})


def _replanned(plan: Plan, recipe: Recipe) -> Plan:
    """The plan as far as arguments follow from it: with other sizes, on the hardware that it was made for."""
    longest = recipe.max_seq_len or plan.max_seq_len
    if longest > plan.shape.max_positions:
        raise UsageError(f"max_seq_len {longest} is above the model's {plan.shape.max_positions} positions")
    allowed = allowed_page_tokens(recipe.target, plan.shape, plan.hardware)
    if allowed is not None and recipe.page_tokens not in allowed[0]:
        sizes = ", ".join(map(str, sorted(allowed[0])))
        raise UsageError(f"page_tokens {recipe.page_tokens}: {allowed[1]}", hint=f"Take one of {sizes}.")
    pool = kv_budget(
        recipe,
        plan.kv_layout,
        max_seq_len=longest,
        weight_bytes=plan.weight_bytes_per_gpu,
        free_memory=plan.hardware.free_memory,
        default_fraction=traits_of(recipe.target).memory_fraction,
    )
    require_room(plan.weight_bytes_per_gpu, pool, plan.hardware.free_memory)
    return plan.model_copy(update={"recipe": recipe, "max_seq_len": longest, "kv_bytes": pool.bytes})
