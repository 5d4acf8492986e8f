"""A plan as pages show it: sentences, bars and choices, drawn from the same report as `roundhouse plan`."""

from __future__ import annotations

from dataclasses import dataclass

from roundhouse.build.models.shipped import SHAPE_PREFIX
from roundhouse.build.planner.buildable import unbuilt_reason
from roundhouse.build.planner.plan import Plan
from roundhouse.build.planner.report import PlanReport, report_of
from roundhouse.build.planner.report_parts import DecodeReport, StageReport
from roundhouse.build.planner.view_facts import (
    binding_limit_text,
    devices_text,
    facts_of,
    price_text,
    speed_text,
    verdict_text,
)
from roundhouse.build.recipe import Recipe

from .form import PlanForm
from .memory_parts import memory_parts
from .recipe_text import recipe_text

__all__ = ["Choice", "MemoryOf", "Reason", "ShownPlan", "SpeedRow", "shown_plan", "why_not_built"]


@dataclass(frozen=True)
class Choice:
    """Something that would be legal."""

    text: str
    query: str | None
    """The address of the plan with it; None where a form cannot say it."""


@dataclass(frozen=True)
class Reason:
    """Why a plan is refused, and what would be legal, nearest first."""

    message: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class MemoryOf:
    """The memory of one kind of GPU of the deployment."""

    label: str
    parts: tuple[tuple[str, int], ...]
    """Kind and bytes; they may be more than there is."""
    capacity: int
    """Bytes."""


@dataclass(frozen=True)
class SpeedRow:
    """Decode speed with so many requests in flight."""

    concurrency: int
    speed: str
    share: float
    """Of the fastest row, from 0 to 1."""
    basis: str
    run: str | None
    """The benchmark run that it was measured in, or is fitted to."""
    price: str | None


@dataclass(frozen=True)
class ShownPlan:
    """Everything that a page says of a plan."""

    report: PlanReport
    verdict: str
    devices: str
    reasons: tuple[Reason, ...]
    memory: tuple[MemoryOf, ...]
    taken_by: str
    """What holds the memory that is not free."""
    set_by: str
    """What decided how large the pool is."""
    speeds: tuple[SpeedRow, ...]
    no_speed: str
    """Why no speed is predicted, where none is."""
    facts: dict[str, str]
    yaml: str
    """The recipe, with the keys that it was given."""
    unbuilt: str | None
    """Why this recipe cannot be built, although it may be legal."""


def shown_plan(plan: Plan, recipe: Recipe, form: PlanForm) -> ShownPlan:
    """What a page says of a plan.

    Args:
        plan: the plan.
        recipe: as it was given, with its open keys left open.
        form: whose address the choices change.
    """
    report = report_of(plan)
    on_gpu = report.hardware.kind == "cuda"
    known = report.hardware.bandwidth_bytes_per_s is not None
    no_speed = "No request of this length fits." if known else f"The memory bandwidth of {report.gpu} is not known."
    return ShownPlan(
        report=report,
        verdict=verdict_text(report),
        devices=devices_text(report),
        reasons=tuple(
            Reason(
                problem.message,
                tuple(Choice(each.text, _query(form.with_alternative(each))) for each in problem.alternatives),
            )
            for problem in plan.problems
        ),
        memory=tuple(_memory(report, index, stage) for index, stage in enumerate(report.stages, 1)),
        taken_by="driver and context" if on_gpu else "everything else that runs",
        set_by=binding_limit_text(report),
        speeds=_speeds(report),
        no_speed="" if report.decode else no_speed,
        facts=facts_of(report),
        yaml=recipe_text(recipe),
        unbuilt=why_not_built(plan),
    )


def why_not_built(plan: Plan) -> str | None:
    """Why a plan cannot be built by this version, or None when it can."""
    recipe = plan.recipe
    if (reason := unbuilt_reason(recipe, plan.shape)) is not None:
        return f"{recipe.target}: {reason}."
    if recipe.model.startswith(SHAPE_PREFIX):
        return "A shape has no weights: give the model's folder to build it."
    return None


def _query(form: PlanForm | None) -> str | None:
    return None if form is None else form.full_query


def _memory(report: PlanReport, index: int, stage: StageReport) -> MemoryOf:
    capacity = sum((stage.weight_bytes, stage.kv_bytes, stage.left_over_bytes, stage.taken_bytes))
    device = report.gpu if stage.gpus == 1 else f"each of {stage.gpus} × {report.gpu}"
    staged = f"Stage {index}, layers {stage.first_layer}-{stage.last_layer}: " if len(report.stages) > 1 else ""
    label = f"{staged}{device}" if staged else device[:1].upper() + device[1:]
    return MemoryOf(label, memory_parts(report, stage), capacity)


def _speeds(report: PlanReport) -> tuple[SpeedRow, ...]:
    fastest = max((row.tokens_per_s for row in report.decode), default=0.0)

    def shown(row: DecodeReport) -> SpeedRow:
        price = None if row.price_per_million_tokens is None else price_text(row)
        share = row.tokens_per_s / fastest if fastest else 0.0
        return SpeedRow(row.concurrency, speed_text(row), share, row.basis, row.run, price)

    return tuple(shown(row) for row in report.decode)
