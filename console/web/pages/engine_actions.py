"""What is asked to be done with an engine: verifying it, and removing its files."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from ...access.secrets import new_secret
from ...engines.actions import ask_remove, ask_verify
from ...engines.queries import engine_detail
from ...models import Job
from ..page import Page
from ..rendering import redirect
from ..state import state_of
from ..who import Builder, Reading, needs

__all__ = ["router"]

router = APIRouter()

_Key = Annotated[str, Form(max_length=200)]


@router.post("/engines/{engine_id}/verify")
def verify(
    request: Request, actor: Builder, engine_id: str, idempotency_key: _Key = "", replica: Annotated[int | None, Form()] = None
) -> Response:
    """Have one copy verified, or all."""
    with state_of(request).database.writing() as session:
        jobs = ask_verify(session, actor, engine_id, replica_id=replica, key=idempotency_key or None)
        said = _said("verify", jobs)
    return redirect(f"/engines/{engine_id}?tab=replicas", said)


@router.get("/engines/{engine_id}/delete", dependencies=[needs("build")])
def confirm_delete(page: Page, session: Reading, engine_id: str) -> Response:
    """What would go, and what stays."""
    return page("engines/delete.html", engine=engine_detail(session, engine_id), idempotency_key=new_secret())


@router.post("/engines/{engine_id}/delete")
def delete(request: Request, actor: Builder, engine_id: str, idempotency_key: _Key = "") -> Response:
    """Have its files removed everywhere."""
    with state_of(request).database.writing() as session:
        jobs = ask_remove(session, actor, engine_id, key=idempotency_key or None)
        said = _said("remove", jobs)
    return redirect(f"/engines/{engine_id}?tab=replicas", said)


def _said(what: str, jobs: list[Job]) -> str:
    where = ", ".join(f"{job.host} (job {job.id})" for job in jobs)
    return f"Asked to {what} it on {where}."
