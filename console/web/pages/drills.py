"""Drills: asking for one, the list, and the report of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response
from pydantic import ValidationError

from roundhouse.build.recipe import Guard
from roundhouse.serve.drill.kinds import KINDS

from ...access.secrets import new_secret
from ...drills.actions import ask_drill
from ...drills.queries import drill_detail, engines_to_drill, list_drills
from ...drills.records import DrillDetail, DrillWish
from ...errors import ConflictError, NotFoundError
from ...jobs.queries import job_detail
from ...jobs.waiting import why_waiting
from ..api.asked import JobId
from ..list_url import ListUrl
from ..page import ListPage, Page
from ..rendering import redirect
from ..state import state_of
from ..who import Builder, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/integrity/drills")

_Text = Annotated[str, Query(max_length=64)]
_Given = Annotated[str, Form(max_length=200)]


@router.get("", dependencies=[needs("read")])
def drills(page: Page, session: Reading, part: ListPage) -> Response:
    """Every drill."""
    url = ListUrl("/integrity/drills", {"size": 50}, page=part.number, size=part.size)
    return page("integrity/drills.html", drills=list_drills(session, part), url=url)


@router.get("/new", dependencies=[needs("build")])
def new(
    page: Page,
    session: Reading,
    engine: _Text = "",
    seed: _Text = "",
    steps: _Text = "",
    fault: Annotated[tuple[str, ...], Query()] = (),
    guard: Annotated[tuple[str, ...], Query()] = (),
) -> Response:
    """The form, filled with what the address says: so a drill can be played again."""
    given = {"engine": engine, "seed": seed, "steps": steps, "fault": fault, "guard": guard}
    return page("integrity/new_drill.html", **_form(given, engines_to_drill(session), {}, new_secret()))


@router.post("")
def ask(
    request: Request,
    page: Page,
    session: Reading,
    actor: Builder,
    engine: _Given = "",
    seed: _Given = "",
    steps: _Given = "",
    fault: Annotated[tuple[str, ...], Form()] = (),
    guard: Annotated[tuple[str, ...], Form()] = (),
    idempotency_key: _Given = "",
) -> Response:
    """Ask for a drill, or show the form again with what is wrong."""
    given = {"engine": engine, "seed": seed, "steps": steps, "fault": fault, "guard": guard}
    try:
        wish = DrillWish.model_validate(
            {
                "engine_id": engine or None,
                "seed": seed.strip() or None,
                "steps": steps.strip() or None,
                "faults": fault or None,
                "guards": guard or None,
            }
        )
        with state_of(request).database.writing() as writing:
            job_id = ask_drill(writing, actor, wish, key=idempotency_key or None).id
    except ValidationError as error:
        problems = {_FIELDS.get(str(each["loc"][0]) if each["loc"] else "", "fault"): each["msg"] for each in error.errors()}
    except (NotFoundError, ConflictError) as error:
        problems = {"engine": error.message}
    else:
        return redirect(f"/integrity/drills/{job_id}")
    values = _form(given, engines_to_drill(session), problems, idempotency_key or new_secret())
    return page("integrity/new_drill.html", 422, **values)


@router.get("/{job_id}", dependencies=[needs("read")])
def drill(page: Page, session: Reading, job_id: JobId) -> Response:
    """One drill, with its report when it has ended."""
    found = drill_detail(session, job_id)
    job = job_detail(session, job_id)
    return page("integrity/drill.html", drill=found, job=job, waiting=why_waiting(session, job), again=_again(found))


@router.get("/{job_id}/live", dependencies=[needs("read")])
def live(page: Page, session: Reading, job_id: JobId) -> Response:
    """How far it is, for a page that follows it; when it has ended, the page is loaded anew."""
    found, job = drill_detail(session, job_id), job_detail(session, job_id)
    response = page.fragment("integrity/drill_progress.html", drill=found, job=job, waiting=why_waiting(session, job))
    if not job.is_live:
        response.headers["hx-refresh"] = "true"
    return response


def _again(drill: DrillDetail) -> str:
    """The address of the form, filled as this drill was."""
    wish = drill.wish
    given = {"engine": drill.engine_id, "seed": drill.seed, "steps": wish.get("steps")}
    known: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    known |= {"fault": wish.get("faults") or (), "guard": wish.get("guards") or ()}
    return f"/integrity/drills/new?{urlencode(known, doseq=True)}"


_FIELDS = {"engine_id": "engine", "seed": "seed", "steps": "steps", "faults": "fault", "guards": "guard"}


def _form(given: Mapping[str, object], engines: list[tuple[str, str]], problems: dict[str, str], key: str) -> dict[str, Any]:
    return {
        "given": given,
        "engines": [
            ("", "no model: the loop, pool, scheduler and guard alone"),
            *((id_, f"{name} ({id_})") for id_, name in engines),
        ],
        "kinds": tuple(KINDS.values()),
        "guards": get_args(Guard),
        "problems": {name: text.removeprefix("Value error, ") for name, text in problems.items()},
        "idempotency_key": key,
    }
