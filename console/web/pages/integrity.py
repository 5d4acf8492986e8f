"""Whether every page check held: what live deployments counted, and every row that was stopped."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from sqlalchemy.orm import Session

from ...deployments.queries import deployment
from ...drills.queries import list_drills
from ...integrity.explaining import explain
from ...integrity.queries import EventFilter, events, totals, verdict
from ...integrity.reading import event_choices, guards_of, one_event, silent_ones
from ...paging import PageOf
from ..list_url import ListUrl
from ..page import ListPage, Page
from ..page_maps import counted
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/integrity", dependencies=[needs("read")])

_LATEST_DRILLS = PageOf(size=5)
_Text = Annotated[str, Query(max_length=64)]


@router.get("")
def integrity(
    page: Page,
    session: Reading,
    part: ListPage,
    deployment: _Text = "",
    engine: _Text = "",
    kind: Literal["", "tag", "count", "content"] = "",
) -> Response:
    """Everything about it on one page."""
    wanted = EventFilter(deployment=deployment or None, engine=engine or None, kind=kind or None)
    found = events(session, wanted, part)
    return page(
        "integrity/list.html",
        events=[(event, explain(event)) for event in found.items],
        paged=found,
        wanted=wanted,
        is_filtered=wanted != EventFilter(),
        choices=event_choices(session),
        url=ListUrl("/integrity", {"size": 50}, **wanted.model_dump(), page=part.number, size=part.size),
        drills=list_drills(session, _LATEST_DRILLS).items,
        **_counted(session),
    )


@router.get("/live")
def live(page: Page, session: Reading) -> Response:
    """What deployments have counted by now, for a page that follows it."""
    return page.fragment("integrity/counters.html", **_counted(session))


@router.get("/events/{event_id}")
def event(page: Page, session: Reading, event_id: Annotated[int, Path(ge=1, le=2**31 - 1)]) -> Response:
    """One row that was stopped."""
    found = one_event(session, event_id)
    served = None if found.deployment_name is None else deployment(session, found.deployment_id or "")
    values = {"deployment": None} if served is None or not served.live else counted(served) | {"marked": found.page}
    return page("integrity/event.html", event=found, said=explain(found), **values)


def _counted(session: Session) -> dict[str, Any]:
    of_each = totals(session)
    ids = [each.deployment_id for each in of_each]
    return {
        "totals": of_each,
        "verdict": verdict(of_each),
        "guards": guards_of(session, ids),
        "silent": silent_ones(session, ids),
    }
