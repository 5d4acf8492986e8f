"""Asking for a build: the recipe as text, its plan beside it, and who would build it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response
from sqlalchemy.orm import Session

from roundhouse.errors import PlanRefusedError, RoundhouseError

from ...access.secrets import new_secret
from ...builds.actions import ask_build
from ...builds.placing import place
from ...builds.queries import recipe_of
from ...jobs.queries import job_detail
from ...plans.form import FormProblemsError, PlanForm
from ...plans.recipe_text import recipe_from_text, recipe_text
from ...plans.shown import shown_plan
from ..page import Page
from ..rendering import redirect
from ..state import state_of
from ..who import Builder, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/builds")
_FIRST = "model: demo:smollm2\n"

RecipeText = Annotated[str, Form(max_length=100_000)]


@router.get("/new", dependencies=[needs("build")])
def new(
    request: Request, page: Page, session: Reading, job: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> Response:
    """The recipe of an address or of an earlier job, to be built, or changed first."""
    form, problem, text = PlanForm.read(request.query_params.multi_items()), "", _FIRST
    if job is not None:
        recipe = recipe_of(job_detail(session, job))
        text, problem = (recipe_text(recipe), "") if recipe else (_FIRST, f"job {job} has no recipe that can be built again")
    elif form.values.keys() - {"device"}:
        try:
            text = recipe_text(form.recipe())
        except FormProblemsError as error:
            problem = str(error)
    values = _planned(request, session, text)
    return page("builds/new.html", key=new_secret(), in_parts=False, **values | ({"problem": problem} if problem else {}))


@router.post("/new/plan", dependencies=[needs("build")])
def plan(
    request: Request,
    page: Page,
    session: Reading,
    recipe: RecipeText = "",
    idempotency_key: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """What the text means now: a part of the page for scripts, the whole page for a browser without."""
    values = _planned(request, session, recipe)
    if "hx-request" in request.headers:
        return page.fragment("builds/new_answer.html", in_parts=True, **values)
    return page("builds/new.html", key=idempotency_key or new_secret(), in_parts=False, **values)


@router.post("")
def ask(
    request: Request,
    page: Page,
    session: Reading,
    actor: Builder,
    recipe: RecipeText = "",
    idempotency_key: Annotated[str, Form(min_length=8, max_length=200)] = "",
) -> Response:
    """Put it in line; what the plan refuses is shown again with the reasons."""
    state = state_of(request)
    try:
        wanted = recipe_from_text(recipe)
        job_id = ask_build(state.database, actor, wanted, state.models, idempotency_key or None).id
    except RoundhouseError as error:
        values = _planned(request, session, recipe)
        if not isinstance(error, PlanRefusedError) and not values["problem"]:
            values |= {"problem": error.message, "hint": error.hint or ""}
        return page("builds/new.html", status=422, key=idempotency_key, in_parts=False, **values)
    return redirect(f"/builds/{job_id}", "The build is in line.")


def _planned(request: Request, session: Session, text: str) -> dict[str, Any]:
    """Everything that the page says of a text."""
    values: dict[str, Any] = {"text": text, "problem": "", "hint": "", "shown": None, "placing": None, "plan_query": ""}
    try:
        recipe = recipe_from_text(text)
        placing = place(session, recipe, state_of(request).models)
    except RoundhouseError as error:
        return values | {"problem": error.message, "hint": error.hint or ""}
    form = PlanForm.of(recipe)
    shown = shown_plan(placing.plan, recipe, form)
    return values | {"shown": shown, "placing": placing, "plan_query": form.query}
