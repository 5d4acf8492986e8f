"""Builds for programs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from roundhouse.build.recipe import recipe_from

from ...builds.actions import ask_build
from ...jobs.queries import job_detail, list_jobs
from ...jobs.records import JobDetail, JobRow
from ...paging import Paged
from ..job_list import BuildsListed
from ..page import ListPage
from ..state import state_of
from ..who import Builder, Reading, needs
from .asked import IdempotencyKey

__all__ = ["BuildRequest", "router"]

router = APIRouter(prefix="/api/v1/builds", tags=["builds"])


class BuildRequest(BaseModel):
    """What is to be built."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    recipe: dict[str, Any] = Field(examples=[{"model": "demo:smollm2", "weights": "int4_awq"}])
    """Keys of a recipe; only `model` is needed."""


@router.post("", status_code=202)
def ask(
    request: Request, response: Response, actor: Builder, wanted: BuildRequest, idempotency_key: IdempotencyKey = None
) -> JobDetail:
    """Put a build in line. What the plan refuses is refused (422); the same key again gets the same job."""
    state = state_of(request)
    recipe = recipe_from(wanted.recipe)
    job_id = ask_build(state.database, actor, recipe, state.models, idempotency_key or None).id
    response.headers["location"] = f"/api/v1/jobs/{job_id}"
    with state.database.reading() as session:
        return job_detail(session, job_id)


@router.get("", dependencies=[needs("read")])
def list_builds(session: Reading, wanted: BuildsListed, part: ListPage) -> Paged[JobRow]:
    """The builds, the newest first."""
    return list_jobs(session, wanted, part)
