"""Plans for programs: the same that `roundhouse plan --json` answers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from roundhouse.build.planner.report import PlanReport, report_of
from roundhouse.build.recipe import recipe_from

from ...benchmarks.calibrating import measured_here
from ...plans.answer import plan_here
from ...plans.devices import Device, devices
from ...plans.suggestions import suggested_models
from ..state import state_of
from ..who import Reading, needs

__all__ = ["PlanRequest", "router"]

router = APIRouter(prefix="/api/v1/plans", tags=["plans"], dependencies=[needs("read")])


class PlanRequest(BaseModel):
    """What is to be planned, and for what."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    recipe: dict[str, Any] = Field(examples=[{"model": "demo:smollm2", "weights": "int4_awq"}])
    """Keys of a recipe; only `model` is needed."""
    device: str | None = Field(default=None, max_length=200)
    """A device of the list, or a part of the name of a GPU of the table; null: the first device of the list."""
    request_tokens: int | None = Field(default=None, ge=1, lt=2**63)
    """How long requests usually are; null: the longest possible."""
    price_per_gpu_hour: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """In any currency: what a million output tokens cost is told in the same."""


@router.post("")
def make(request: Request, session: Reading, wanted: PlanRequest) -> PlanReport:
    """Plan a recipe. An illegal one is answered too: `legal` is false, and `problems` says why."""
    device = devices(session).called(wanted.device)
    plan = plan_here(
        recipe_from(wanted.recipe),
        device,
        state_of(request).models,
        request_tokens=wanted.request_tokens,
        price_per_gpu_hour=wanted.price_per_gpu_hour,
        measured=measured_here(session),
    )
    return report_of(plan)


@router.get("/devices")
def list_devices(session: Reading) -> tuple[Device, ...]:
    """What a plan can be made for: live workers, the console's machine, and GPUs of the table."""
    return devices(session).known


@router.get("/models")
def list_models(request: Request, session: Reading) -> tuple[str, ...]:
    """Models that can be named: of earlier builds, in the allowed folders, and what ships."""
    return suggested_models(session, state_of(request).models)
