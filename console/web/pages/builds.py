"""The list of builds and other jobs, the page of one, and what is done to it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy.orm import Session

from roundhouse.build.planner.report import PlanReport
from roundhouse.errors import RoundhouseError

from ...builds.actions import ask_cancel, ask_retry
from ...builds.filters import JobsWanted
from ...builds.measured import MEASURES, page_of_record
from ...builds.placing import place
from ...builds.queries import built_engine, built_manifest, recipe_of
from ...builds.stages import shown_stages
from ...builds.words import KIND_NAMES, STATES, job_title
from ...engines.manifest_view import GpuMemory, view_of
from ...jobs.queries import count_by_state, job_detail, list_jobs, log_lines
from ...jobs.records import JobDetail
from ...jobs.waiting import why_waiting
from ...paging import PageOf
from ...plans.form import PlanForm
from ...plans.recipe_text import recipe_text
from ...plans.shown import MemoryOf, shown_plan
from ..api.asked import JobId
from ..page import ListPage, Page
from ..rendering import redirect
from ..state import state_of
from ..who import BuilderOrDeployer, Reading, Viewer, needs

__all__ = ["router"]

router = APIRouter(prefix="/builds")
Attempt = Annotated[int | None, Query(ge=1, le=10_000)]
_LINES = 500
"""Of a log, on its page; the rest is in the download."""


@router.get("", dependencies=[needs("read")])
def jobs(page: Page, session: Reading, wanted: Annotated[JobsWanted, Query()], part: ListPage) -> Response:
    """The list."""
    return page("builds/list.html", **_listed(session, wanted, part))


@router.get("/table", dependencies=[needs("read")])
def table(page: Page, session: Reading, wanted: Annotated[JobsWanted, Query()], part: ListPage) -> Response:
    """The list's table as it is now, for the page that shows it."""
    return page.fragment("builds/table.html", **_listed(session, wanted, part))


@router.get("/{job_id}", dependencies=[needs("read")])
def job(request: Request, page: Page, session: Reading, job_id: JobId, attempt: Attempt = None) -> Response:
    """One job."""
    found = job_detail(session, job_id)
    number = attempt or max(1, found.attempt)
    written = next((each.lines for each in found.attempts if each.number == number), 0)
    lines = log_lines(session, job_id, number, after=max(0, written - _LINES))
    follows = found.is_live and number == max(1, found.attempt) and (found.state == "running" or found.attempt == 0)
    return page(
        "builds/job.html",
        **_live(session, found, number, chosen=attempt is not None),
        **_beside(request, session, found),
        lines=lines,
        total=lines[-1].number if lines else 0,
        stream=f"/builds/{job_id}/log/stream?attempt={number}" if follows else "",
        in_parts=False,
    )


@router.get("/{job_id}/live", dependencies=[needs("read")])
def live(page: Page, session: Reading, job_id: JobId, actor: Viewer, attempt: Attempt = None, chosen: bool = False) -> Response:
    """The parts of a job's page that change, as they are now; all of it when another attempt has begun."""
    found = job_detail(session, job_id)
    shown = attempt or max(1, found.attempt)
    response = page.fragment(
        "builds/live.html", form_token=actor.form_token or "", in_parts=True, **_live(session, found, shown, chosen=chosen)
    )
    if not chosen and found.attempt > shown:
        response.headers["hx-refresh"] = "true"
    return response


@router.post("/{job_id}/cancel")
def cancel(request: Request, actor: BuilderOrDeployer, job_id: JobId) -> Response:
    """Cancel it; builds need another role than deployments, which the action knows."""
    with state_of(request).database.writing() as session:
        found = ask_cancel(session, actor, job_id)
        ended = "Cancelled." if found.state == "cancelled" else f"It has ended: {found.state}."
        text = "Its worker is told to end it." if found.state == "running" else ended
    return redirect(f"/builds/{job_id}", text)


@router.post("/{job_id}/retry")
def retry(request: Request, actor: BuilderOrDeployer, job_id: JobId) -> Response:
    """Try it again; one that is under way already stays as it is."""
    with state_of(request).database.writing() as session:
        running = ask_retry(session, actor, job_id).state == "running"
    return redirect(f"/builds/{job_id}", "It is running already." if running else "It is in line.")


def _listed(session: Session, wanted: JobsWanted, part: PageOf) -> dict[str, Any]:
    found = list_jobs(session, wanted.as_filter, part)
    counts = count_by_state(session, wanted.kinds)
    return {
        "found": found,
        "wanted": wanted,
        "counts": counts,
        "states": STATES,
        "kind_names": KIND_NAMES,
        "title_of": job_title,
    }


def _live(session: Session, found: JobDetail, number: int, *, chosen: bool) -> dict[str, Any]:
    return {
        "job": found,
        "name": job_title(found),
        "number": number,
        "chosen": chosen,
        "stages": shown_stages(found),
        "waiting": why_waiting(session, found),
        "engine": built_engine(session, found),
        "measures": found.kind in MEASURES,
        "record": page_of_record(session, found),
        "scope": "deploy" if found.kind in ("deploy", "undeploy") else "build",
    }


def _beside(request: Request, session: Session, found: JobDetail) -> dict[str, Any]:
    """A build's recipe and plan: the plan of the engine that it made; before there is one, the plan as it would be now.

    The plan is missing where it cannot be read, or cannot be made here any more.
    """
    recipe = recipe_of(found)
    if recipe is None:
        return {"yaml": "", "plan_query": "", "plan": None}
    form = PlanForm.of(recipe)
    beside: dict[str, Any] = {"yaml": recipe_text(recipe), "plan_query": form.query, "plan": None}
    if (manifest := built_manifest(session, found)) is not None:
        view = view_of(manifest)
        return beside if view is None else beside | _plan(view.plan, view.memories, f"as built, for {view.plan.hardware.name}")
    try:
        placing = place(session, recipe, state_of(request).models)
    except RoundhouseError:
        return beside
    shown = shown_plan(placing.plan, recipe, form)
    return beside | _plan(shown.report, shown.memory, f"as it would be planned now, on {placing.planned_on or 'this machine'}")


def _plan(report: PlanReport, memories: tuple[GpuMemory, ...] | tuple[MemoryOf, ...], when: str) -> dict[str, Any]:
    return {"plan": report, "memories": memories, "planned": when}
