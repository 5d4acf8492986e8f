"""Options of an engine against the recipe that they are in: plans refuse what the builder would end with."""

from __future__ import annotations

from typing import Any

import pytest
from trtllm_engine_recipes import engine_plan

from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.planner.plan import make_plan
from roundhouse.build.planner.problems import Problem


def problems(name: str, options: dict[str, Any]) -> tuple[Problem, ...]:
    """Of a recipe of the table, with these options."""
    plan = engine_plan(name)
    recipe = plan.recipe.model_copy(update={"target_options": options})
    return tuple(make_plan(recipe, plan.shape, inventory_from_shape(plan.shape), plan.hardware).problems)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("llama-3.1-70b-tp4", {"opt_batch_size": 129}, "opt_batch_size: 129 is more than max_batch_size 128"),
        ("qwen3-8b", {"opt_num_tokens": 8193}, "opt_num_tokens: 8193 is more than max_num_tokens 8192"),
        (
            "llama-3.1-70b-tp4",
            {"plugin_config.use_fused_mlp": True},
            "plugin_config.use_fused_mlp: the builder fuses gate and up of bf16 and fp8 weights only",
        ),
    ],
)
def test_options_that_the_recipe_has_no_room_for_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    assert [problem.message for problem in problems(name, options)] == [f"target_options.{message}"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("llama-3.1-70b-tp4", {"opt_batch_size": 128, "opt_num_tokens": None, "plugin_config.use_fused_mlp": False}),
        ("qwen3-8b", {"opt_num_tokens": 8192, "plugin_config": {"use_fused_mlp": True}}),
    ],
)
def test_others_are_taken(name: str, options: dict[str, Any]) -> None:
    assert problems(name, options) == ()


def test_of_options_that_upstream_does_not_take_no_more_is_said() -> None:
    (problem,) = problems("qwen3-8b", {"opt_batch_size": "9999", "plugin_config": {"use_fused_mlp": True}})
    assert "'9999' is no int" in problem.message
