"""What this version plans and does not build, with the reason: rules of ``support.toml`` beside those of legality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundhouse.errors import PlanRefusedError

from ..hardware import Hardware
from ..models.shape import ModelShape
from ..recipe import Recipe
from .support import hardware_problem, is_quantized_here, unbuilt_rules

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["require_buildable", "require_hardware", "unbuilt_reason"]


def unbuilt_reason(recipe: Recipe, shape: ModelShape) -> str | None:
    """Why this version does not build a settled recipe, although its target may run it; None when it does."""
    facts = {
        "weights": recipe.weights,
        "kv_cache": recipe.kv_cache,
        "rope": shape.rope,
        "family": "known" if is_quantized_here(shape) else "other",
    }
    for rule in unbuilt_rules(recipe.target):
        if all(facts[key] in rule[key] for key in facts.keys() & rule.keys()):
            return str(rule["reason"]).format(architecture=shape.architecture, weights=recipe.weights, rope=shape.rope)
    return None


def require_buildable(plan: Plan) -> None:
    """Refuse what is planned by this version and not built.

    Raises:
        PlanRefusedError: with the reason.
    """
    if reason := unbuilt_reason(plan.recipe, plan.shape):
        raise PlanRefusedError(f"target {plan.recipe.target}: {reason}", reasons=(reason,))


def require_hardware(recipe: Recipe, hardware: Hardware) -> None:
    """Refuse hardware on which a recipe's target runs no model at all: what a plan would say too, before there is a model.

    Raises:
        PlanRefusedError: naming what the target needs.
    """
    if problem := hardware_problem(recipe, hardware):
        raise PlanRefusedError(problem.message, reasons=(problem.message,))
