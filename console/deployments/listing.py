"""A list of deployments with what they do now."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..models import Deployment, DeploymentLogLine
from ..paging import Paged, PageOf
from .live import LiveValues, live_values, token_rates
from .queries import DeploymentFilter, deployments, latest_samples, log_lines
from .records import DeploymentRow, LogText

__all__ = ["ListedDeployment", "LogEnd", "hosts_with_deployments", "list_deployments", "log_end"]


class ListedDeployment(BaseModel):
    """One of a list."""

    model_config = ConfigDict(frozen=True)

    deployment: DeploymentRow
    values: LiveValues | None
    """None where its host has told nothing for a while."""
    rates: tuple[float | None, ...]
    """Generated tokens a second over the last minutes, the oldest first."""
    uptime_s: float | None
    """Since it last became ready; None while it is not."""


class LogEnd(BaseModel):
    """The last lines of a log."""

    model_config = ConfigDict(frozen=True)

    lines: tuple[LogText, ...]
    total: int
    """Lines that it ever had; the database keeps the last ones."""


def list_deployments(session: Session, wanted: DeploymentFilter, page: PageOf) -> Paged[ListedDeployment]:
    """A page of them, the newest first. Four statements."""
    found = deployments(session, wanted, page)
    ids = [each.id for each in found.items]
    now, latest, rates = utc_now(), latest_samples(session, ids), token_rates(session, ids)
    items = tuple(
        ListedDeployment(
            deployment=each,
            values=live_values(*latest[each.id]) if each.live and each.id in latest else None,
            rates=tuple(rates.get(each.id, ())) if each.live else (),
            uptime_s=_uptime(each, now),
        )
        for each in found.items
    )
    return Paged(items=items, total=found.total, page=found.page, size=found.size)


def hosts_with_deployments(session: Session) -> tuple[str, ...]:
    """Hosts that have, or had, any, by name. One statement."""
    return tuple(session.scalars(select(Deployment.host).distinct().order_by(Deployment.host)))


def log_end(session: Session, deployment_id: str, most: int) -> LogEnd:
    """The last lines of a log, at most so many. Two statements."""
    last = session.scalar(select(func.max(DeploymentLogLine.number)).where(DeploymentLogLine.deployment_id == deployment_id))
    return LogEnd(lines=tuple(log_lines(session, deployment_id, (last or 0) - most, most)), total=last or 0)


def _uptime(row: DeploymentRow, now: datetime) -> float | None:
    return (now - row.ready_at).total_seconds() if row.state in ("ready", "unready") and row.ready_at else None
