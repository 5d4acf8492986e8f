"""Options of an engine that go with some recipes only."""

from __future__ import annotations

from collections.abc import Iterator

from ..planner.problems import Problem
from ..recipe import Recipe
from .options import nested_options

__all__ = ["engine_option_problems"]

_BEST_BELOW = {"opt_batch_size": "max_batch_size", "opt_num_tokens": "max_num_tokens"}
"""What an engine is made fastest for, and the recipe's limit of it."""


def engine_option_problems(recipe: Recipe) -> list[Problem]:
    """What the builder would end with after hours of quantizing, of options that it takes for other recipes.

    Args:
        recipe: for the target ``tensorrt``, with options that :func:`~.options.check_target_options` takes.
    """
    return [
        Problem(code="target_options", where=f"target_options.{key}", message=f"target_options.{key}: {text}")
        for key, text in _complaints(recipe)
    ]


def _complaints(recipe: Recipe) -> Iterator[tuple[str, str]]:
    options = nested_options(recipe.target_options)
    for key, limit in _BEST_BELOW.items():
        given, most = options.get(key), getattr(recipe, limit)
        if given is not None and given > most:
            yield key, f"{given} is more than {limit} {most}"
    if recipe.weights == "int4_awq" and options.get("plugin_config", {}).get("use_fused_mlp"):
        yield "plugin_config.use_fused_mlp", "the builder fuses gate and up of bf16 and fp8 weights only"
