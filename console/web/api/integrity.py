"""Integrity events and counters, for programs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from ...integrity.queries import EventFilter, events, totals, verdict
from ...integrity.reading import one_event
from ...integrity.records import EventRow, Integrity
from ...paging import Paged
from ..page import ListPage
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/integrity", tags=["integrity"], dependencies=[needs("read")])


@router.get("")
def integrity(session: Reading) -> Integrity:
    """Whether all is well now."""
    of_each = totals(session)
    return Integrity(verdict=verdict(of_each), deployments=tuple(of_each))


@router.get("/events")
def integrity_events(
    session: Reading,
    part: ListPage,
    deployment: Annotated[str | None, Query(max_length=64, description="A deployment's id.")] = None,
    engine: Annotated[str | None, Query(max_length=64, description="An engine's id.")] = None,
    kind: Literal["tag", "count", "content"] | None = None,
) -> Paged[EventRow]:
    """Every row that a page check stopped, the newest first."""
    return events(session, EventFilter(deployment=deployment, engine=engine, kind=kind), part)


@router.get("/events/{event_id}")
def event(session: Reading, event_id: Annotated[int, Path(ge=1, le=2**31 - 1)]) -> EventRow:
    """One of them."""
    return one_event(session, event_id)
