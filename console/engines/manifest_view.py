"""An engine's manifest, laid out to be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from roundhouse.build.engine import Manifest
from roundhouse.build.planner.report import PlanReport, report_of
from roundhouse.build.planner.view_facts import facts_of
from roundhouse.build.recipe import Recipe

from ..plans.memory_parts import memory_parts

__all__ = ["GpuMemory", "ManifestView", "RecipeKey", "StageTime", "manifest_text", "view_of"]

_NOT_CHOSEN = ("model", "name")
"""Recipe keys that have no default to differ from."""


@dataclass(frozen=True)
class RecipeKey:
    """A key of the recipe."""

    key: str
    value: str
    is_default: bool


@dataclass(frozen=True)
class GpuMemory:
    """The memory of each GPU of a pipeline stage, as planned."""

    label: str
    parts: tuple[tuple[str, int], ...]
    """Kind and bytes."""
    capacity: int
    """Bytes."""


@dataclass(frozen=True)
class StageTime:
    """How long a stage of the build took."""

    name: str
    seconds: float
    share: float
    """Of all stages together, from 0 to 1."""


@dataclass(frozen=True)
class ManifestView:
    """What a page shows of a manifest."""

    manifest: Manifest
    plan: PlanReport
    plan_facts: dict[str, str]
    memories: tuple[GpuMemory, ...]
    recipe: tuple[RecipeKey, ...]
    stages: tuple[StageTime, ...]


def view_of(manifest: Mapping[str, Any]) -> ManifestView | None:
    """Lay a manifest out; None when another version wrote it, in a form that this one cannot read."""
    try:
        read = Manifest.model_validate_json(json.dumps(manifest))
    except ValidationError:
        return None
    plan = report_of(read.plan)
    return ManifestView(read, plan, facts_of(plan), _memories(plan), _recipe(read.recipe), _stages(read))


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """``engine.json`` as it is on disk."""
    return json.dumps(manifest, indent=2, sort_keys=True) + "\n"


def _memories(plan: PlanReport) -> tuple[GpuMemory, ...]:
    device = "GPU" if plan.hardware.kind == "cuda" else "Machine"
    names = [device if len(plan.stages) == 1 else f"Layers {each.first_layer}-{each.last_layer}" for each in plan.stages]
    return tuple(
        GpuMemory(
            f"{name}, each of {stage.gpus}" if stage.gpus > 1 else name,
            memory_parts(plan, stage),
            plan.hardware.total_bytes,
        )
        for name, stage in zip(names, plan.stages, strict=True)
    )


def _recipe(recipe: Recipe) -> tuple[RecipeKey, ...]:
    chosen, usual = recipe.model_dump(mode="json"), Recipe(model=recipe.model).model_dump(mode="json")
    flat = {key: value for key, value in chosen.items() if key != "calibration"}
    flat |= {f"calibration.{key}": value for key, value in chosen["calibration"].items()}
    default = {key: value for key, value in usual.items() if key != "calibration"}
    default |= {f"calibration.{key}": value for key, value in usual["calibration"].items()}
    keys = [RecipeKey(key, _text(value), key not in _NOT_CHOSEN and value == default[key]) for key, value in flat.items()]
    return tuple(sorted(keys, key=lambda each: each.is_default))


def _text(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return json.dumps(value) if value else "none"
    return str(value)


def _stages(manifest: Manifest) -> tuple[StageTime, ...]:
    whole = sum(manifest.stage_seconds.values()) or 1.0
    order = ("import", "plan", "load", "calibrate", "quantize", "verify", "measure", "compile")
    place = {name: index for index, name in enumerate(order)}
    named = sorted(manifest.stage_seconds.items(), key=lambda pair: place.get(pair[0], len(order)))
    return tuple(StageTime(name, seconds, seconds / whole) for name, seconds in named)
