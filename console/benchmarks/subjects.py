"""What could be measured now, for forms that ask."""

from __future__ import annotations

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..jobs.liveness import is_alive
from ..models import LIVE_STATES, Deployment, Worker

__all__ = ["hosts_of_workers", "measurable_deployments"]

_MOST = 200


def measurable_deployments(session: Session, chosen: str | None) -> list[tuple[str, str]]:
    """Id, and name with host, of deployments that answer, by name, and the chosen one before them. One statement."""
    answers = Deployment.state.in_(LIVE_STATES) & Deployment.endpoints.is_not(None)
    order = (Deployment.id != (chosen or ""), Deployment.name, Deployment.id)
    wanted = select(Deployment.id, Deployment.name, Deployment.host).where(or_(answers, Deployment.id == (chosen or "")))
    return [(row.id, f"{row.name} on {row.host}") for row in session.execute(wanted.order_by(*order).limit(_MOST))]


def hosts_of_workers(session: Session) -> dict[str, bool]:
    """Hosts whose workers are alive, in order, and whether aiperf was there when one of them started. One statement."""
    found: dict[str, bool] = {}
    for host, versions in session.execute(
        select(Worker.host, Worker.versions).where(is_alive(utc_now())).order_by(Worker.host)
    ):
        found[host] = found.get(host, False) or "aiperf" in versions
    return found
