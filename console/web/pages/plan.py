"""The plan page: a form that answers as it is typed in. All of it is in the address."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy.orm import Session

from ...benchmarks.calibrating import measured_here
from ...plans.answer import answer_to
from ...plans.compare import compare
from ...plans.devices import devices
from ...plans.form import MOST_COMPARED, PlanForm
from ...plans.shown import shown_plan
from ...plans.suggestions import suggested_models
from ...settings_table import read_settings
from ..page import Page
from ..state import state_of
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(dependencies=[needs("read")])


@router.get("/plan")
def plan(request: Request, page: Page, session: Reading) -> Response:
    """The form, and what it is answered with."""
    values = _answered(request, session)
    models = suggested_models(session, state_of(request).models)
    status = 422 if values["answer"].problems else 200
    return page("plan/page.html", status=status, suggested=models, in_parts=False, **values)


@router.get("/plan/answer")
def answer(request: Request, page: Page, session: Reading) -> Response:
    """What a form is answered with, for the page that shows it; its address becomes this plan's."""
    values = _answered(request, session)
    response = page.fragment("plan/answer.html", in_parts=True, **values)
    query = values["answer"].form.full_query
    response.headers["hx-replace-url"] = f"/plan?{query}" if query else "/plan"
    return response


def _answered(request: Request, session: Session) -> dict[str, Any]:
    models, known, settings = state_of(request).models, devices(session), read_settings(session)
    price, measured = settings.gpu_hour_price, measured_here(session)
    found = answer_to(PlanForm.read(request.query_params.multi_items()), known, models, price, measured)
    shown = shown_plan(found.plan, found.recipe, found.form) if found.plan and found.recipe else None
    return {
        "answer": found,
        "shown": shown,
        "devices": known,
        "usual_price": price,
        "price_unit": f"{settings.currency} per GPU h" if price is not None else "per GPU h",
        "comparison": compare(found, known, models, price, measured),
        "most_compared": MOST_COMPARED,
    }
