"""What a deployment counts and says, as it goes along, and its log as a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse
from sqlalchemy.orm import Session

from ...deployments.listing import log_end
from ...deployments.live import LivePoint, LiveValues, live_points
from ...deployments.log_rows import KEPT_LINES
from ...deployments.queries import deployment, log_lines
from ...models import LIVE_STATES, Deployment
from ..events import Event, Look, follow
from ..state import state_of
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/deployments/{deployment_id}", dependencies=[needs("read")])
_MOST_LINES = 500


@router.get("/samples")
def samples(session: Reading, deployment_id: str) -> dict[str, Any]:
    """What it counted over the last quarter of an hour, laid out for lines."""
    deployment(session, deployment_id)
    points = live_points(session, deployment_id)
    values = [point.values for point in points]
    series = {name: [getattr(each, name) for each in values] for name in LiveValues.model_fields}
    return {"at": [point.at.timestamp() for point in points], "series": series}


@router.get("/live")
def live(request: Request, session: Reading, deployment_id: str) -> StreamingResponse:
    """Each sample as it comes; the last one at once."""
    deployment(session, deployment_id)

    def look(session: Session, after: int) -> list[Event]:
        points = live_points(session, deployment_id, after)
        return [_event(point) for point in (points if after else points[-1:])]

    return _following(request, deployment_id, look)


@router.get("/log/live")
def log_live(request: Request, session: Reading, deployment_id: str) -> StreamingResponse:
    """Lines of its log as they come."""
    deployment(session, deployment_id)

    def look(session: Session, after: int) -> list[Event]:
        lines = log_lines(session, deployment_id, after, _MOST_LINES)
        return [Event({"number": line.number, "text": line.text}, id=line.number) for line in lines]

    return _following(request, deployment_id, look)


@router.get("/log.txt")
def log_file(session: Reading, deployment_id: str) -> Response:
    """The log as the database has it: the last lines."""
    found = deployment(session, deployment_id)
    kept = log_end(session, deployment_id, KEPT_LINES)
    headers = {"content-disposition": f'attachment; filename="{found.name}-{found.id}.log"'}
    return PlainTextResponse("".join(f"{line.text}\n" for line in kept.lines), headers=headers)


def _following(request: Request, deployment_id: str, look: Callable[[Session, int], list[Event]]) -> StreamingResponse:
    """What a look finds, again and again, until the deployment has ended and there is nothing left to tell."""
    database = state_of(request).database

    def looked(after: int) -> Look:
        with database.reading() as session:
            row = session.get(Deployment, deployment_id)
            told = look(session, after)
        return Look(told, ended=not told and (row is None or row.state not in LIVE_STATES))

    return follow(request, looked)


def _event(point: LivePoint) -> Event:
    return Event({"at": point.at.timestamp(), "values": point.values.model_dump()}, id=point.number)
