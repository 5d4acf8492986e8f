"""What people do with benchmark runs: notes, tags, the pin of a baseline, and deleting."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from ...benchmarks.deleting import delete_runs
from ...benchmarks.marking import set_baseline, set_note, set_tags
from ...benchmarks.queries import benchmark_rows
from ...benchmarks.records import MOST_CHOSEN
from ...errors import NotFoundError
from ..page import Page
from ..rendering import redirect
from ..state import state_of
from ..who import Builder, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/benchmarks")
Runs = Annotated[tuple[str, ...], Query(max_length=MOST_CHOSEN)]


@router.get("/delete", dependencies=[needs("build")])
def confirm(page: Page, session: Reading, run: Runs = ()) -> Response:
    """What would go, and what stays."""
    found = benchmark_rows(session, run)
    if run and not found:
        raise NotFoundError(f"there is no benchmark run {', '.join(run)}")
    return page("benchmarks/delete.html", runs=found)


@router.post("/delete")
def delete(request: Request, actor: Builder, run: Annotated[tuple[str, ...], Form(max_length=MOST_CHOSEN)] = ()) -> Response:
    """Delete them, with all that was measured."""
    with state_of(request).database.writing() as session:
        delete_runs(session, actor, run)
    return redirect("/benchmarks", "1 run was deleted." if len(run) == 1 else f"{len(run)} runs were deleted.")


@router.post("/{benchmark_id}/pin")
def pin(request: Request, actor: Builder, benchmark_id: str, pinned: Annotated[bool, Form()] = False) -> Response:
    """Pin it as a baseline, or unpin it."""
    with state_of(request).database.writing() as session:
        set_baseline(session, actor, benchmark_id, pinned)
    said = "Later runs of its series are compared with it." if pinned else "It is no baseline any more."
    return redirect(f"/benchmarks/{benchmark_id}", said)


@router.post("/{benchmark_id}/note")
def note(request: Request, actor: Builder, benchmark_id: str, text: Annotated[str, Form(alias="note")] = "") -> Response:
    """Write something beside it."""
    with state_of(request).database.writing() as session:
        set_note(session, actor, benchmark_id, text)
    return redirect(f"/benchmarks/{benchmark_id}", "The note was kept." if text.strip() else "It has no note.")


@router.post("/{benchmark_id}/tags")
def tags(request: Request, actor: Builder, benchmark_id: str, text: Annotated[str, Form(alias="tags")] = "") -> Response:
    """Have it carry these tags, and no others."""
    with state_of(request).database.writing() as session:
        kept = set_tags(session, actor, benchmark_id, text.replace(",", " ").split())
    return redirect(f"/benchmarks/{benchmark_id}", f"Its tags: {', '.join(kept)}." if kept else "It has no tags.")
