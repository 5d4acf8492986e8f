"""Finding deployments, and what they counted and said."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from roundhouse.serve.triton.samples import Sample

from ..database.base import utc_now
from ..errors import NotFoundError
from ..models import LIVE_STATES, Deployment, DeploymentLogLine, DeploymentSample, DeploymentState, EngineRecord
from ..paging import Paged, PageOf, paged_rows
from .recent import STILL_NOW, latest_rates
from .records import DeploymentDetail, DeploymentRow, LogText, Rates, TimedSample
from .settings import DeploymentSettings
from .silence import has_worker

__all__ = ["DeploymentFilter", "deployment", "deployments", "latest_samples", "log_lines", "samples"]


class DeploymentFilter(BaseModel):
    """Which deployments are wanted; None does not ask."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: Literal[DeploymentState, "live", "ended"] | None = None
    engine: str | None = Field(default=None, max_length=64)
    """An engine's id."""
    host: str | None = Field(default=None, max_length=255)
    text: str | None = Field(default=None, max_length=100)
    """Part of its name, its id or its engine's name."""


def deployments(session: Session, wanted: DeploymentFilter, page: PageOf) -> Paged[DeploymentRow]:
    """A page of them, the newest first. Two statements."""
    query = _with_engine().order_by(Deployment.created_at.desc(), Deployment.id)
    if wanted.state == "live":
        query = query.where(Deployment.state.in_(LIVE_STATES))
    elif wanted.state == "ended":
        query = query.where(Deployment.state.not_in(LIVE_STATES))
    elif wanted.state is not None:
        query = query.where(Deployment.state == wanted.state)
    if wanted.engine is not None:
        query = query.where(Deployment.engine_id == wanted.engine)
    if wanted.host is not None:
        query = query.where(Deployment.host == wanted.host)
    if wanted.text:
        places = (Deployment.name, Deployment.id, EngineRecord.name)
        query = query.where(or_(*(place.icontains(wanted.text, autoescape=True) for place in places)))
    rows, total = paged_rows(session, query, page)
    now = utc_now()
    items = tuple(DeploymentRow.of(row, name, now) for row, name in rows)
    return Paged(items=items, total=total, page=page.number, size=page.size)


def deployment(session: Session, deployment_id: str) -> DeploymentDetail:
    """One, with what it counts now. Two statements.

    Raises:
        NotFoundError: there is no such deployment.
    """
    now = utc_now()
    wanted = _with_engine().add_columns(has_worker(now)).where(Deployment.id == deployment_id)
    found = session.execute(wanted).one_or_none()
    if found is None:
        raise NotFoundError(f"there is no deployment {deployment_id}")
    row, engine_name = found[0], found[1]
    latest = latest_samples(session, [row.id]).get(row.id)
    return DeploymentDetail.of(
        row,
        engine_name,
        now,
        hint=row.hint,
        home=row.home,
        settings=DeploymentSettings.model_validate(row.settings),
        endpoints=row.endpoints,
        sample=latest[0] if latest else None,
        rates=latest[1] if latest else None,
        uptime_s=(now - row.ready_at).total_seconds() if row.state in ("ready", "unready") and row.ready_at else None,
        has_worker=found[2],
    )


def latest_samples(session: Session, deployment_ids: list[str]) -> dict[str, tuple[TimedSample, Rates | None]]:
    """What each counted last, if that is not long ago, and how fast that grew. One statement."""
    since = utc_now() - STILL_NOW
    known = (DeploymentSample.deployment_id.in_(deployment_ids), DeploymentSample.at > since)
    found: dict[str, list[TimedSample]] = {}
    for row in session.scalars(select(DeploymentSample).where(*known).order_by(DeploymentSample.at)):
        found.setdefault(row.deployment_id, []).append(_timed(row))
    return {id_: (of_one[-1], latest_rates(of_one)) for id_, of_one in found.items()}


def samples(session: Session, deployment_id: str, since: datetime) -> list[TimedSample]:
    """Everything that one counted after a moment, the oldest first. One statement; at most a quarter of an hour."""
    known = (DeploymentSample.deployment_id == deployment_id, DeploymentSample.at > since)
    return [_timed(row) for row in session.scalars(select(DeploymentSample).where(*known).order_by(DeploymentSample.at))]


def log_lines(session: Session, deployment_id: str, after: int, most: int) -> list[LogText]:
    """The first lines of a log after one of this number, at most ``most``. One statement."""
    line = DeploymentLogLine
    known = (line.deployment_id == deployment_id, line.number > after)
    found = session.scalars(select(line).where(*known).order_by(line.number).limit(most))
    return [LogText(number=row.number, at=row.at, text=row.text) for row in found]


def _with_engine() -> Select[Deployment, str]:
    return select(Deployment, EngineRecord.name).join(EngineRecord, EngineRecord.id == Deployment.engine_id)


def _timed(row: DeploymentSample) -> TimedSample:
    return TimedSample(at=row.at, values=Sample.model_validate(row.values))
