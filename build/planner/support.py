"""The support table: which target runs what, with the reason for each no (data in ``support.toml``)."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict

from ..models.shape import ModelShape
from ..recipe import Recipe

__all__ = ["Problem", "unavailable_reason", "unsupported"]

_CHECKED_KEYS = ("weights", "quantize_scope", "activations", "kv_cache", "kv_layout", "attention_data_parallel", "guard")


class Problem(BaseModel):
    """One reason why a plan is refused, and what would be legal instead, nearest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    where: str
    message: str
    legal_alternatives: tuple[str, ...] = ()


def unsupported(recipe: Recipe, shape: ModelShape) -> list[Problem]:
    """Everything about a recipe that its target does not run."""
    target = _table()[recipe.target]
    if reason := unavailable_reason(recipe.target):
        runnable = tuple(name for name, entry in _table().items() if "unavailable" not in entry)
        return [Problem(code="target", where="target", message=f"{recipe.target}: {reason}", legal_alternatives=runnable)]
    problems = [_architecture(target["architectures"], shape), _rope(target["rope"], shape)]
    for key in _CHECKED_KEYS:
        chosen = getattr(recipe, key)
        value = str(chosen).lower() if isinstance(chosen, bool) else str(chosen)
        verdict = target[key].get(value, "not in the support table")
        if verdict is not True:
            legal = tuple(name for name, entry in target[key].items() if entry is True)
            problems.append(Problem(code=key, where=key, message=f"{key} {value}: {verdict}", legal_alternatives=legal))
    for key, limit in target["limits"].items():
        if getattr(recipe, key) > limit:
            message = f"{key} {getattr(recipe, key)}: the {recipe.target} target runs {key} {limit} only"
            problems.append(Problem(code=key, where=key, message=message, legal_alternatives=(str(limit),)))
    if recipe.target_options:
        names = ", ".join(recipe.target_options)
        problems.append(
            Problem(
                code="target_options", where="target_options", message=f"the {recipe.target} target has no options ({names})"
            )
        )
    return [problem for problem in problems if problem]


def unavailable_reason(target: str) -> str | None:
    """Why this version builds nothing for a target, or None when it does."""
    reason: str | None = _table()[target].get("unavailable")
    return reason


def _architecture(known: dict[str, Any], shape: ModelShape) -> Problem | None:
    legal = tuple(name for name, verdict in known.items() if verdict is True)
    name = shape.architecture or f"model_type {shape.model_type or 'absent'}"
    verdict = known.get(shape.architecture, "this architecture is not known here")
    if verdict is True and shape.sliding_window is not None and shape.sliding_window < shape.max_positions:
        verdict = f"a sliding window of {shape.sliding_window} tokens is not run by the torch target yet"
    if verdict is True:
        return None
    return Problem(code="architecture", where="config.json", message=f"{name}: {verdict}", legal_alternatives=legal)


def _rope(known: dict[str, Any], shape: ModelShape) -> Problem | None:
    verdict = known.get(shape.rope, "this kind of rotary embedding is not known here")
    if verdict is True:
        return None
    legal = tuple(name for name, entry in known.items() if entry is True)
    return Problem(code="rope", where="config.json", message=f"rope {shape.rope}: {verdict}", legal_alternatives=legal)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(files(__package__).joinpath("support.toml").read_text())["targets"]
    return table
