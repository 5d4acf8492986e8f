"""What the database knows, as numbers for Prometheus: five statements, however much there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from .database.base import utc_now
from .deployments.silence import is_silent
from .jobs.liveness import is_alive
from .models import LIVE_STATES, Deployment, DeploymentSample, IntegrityRecord, Job, Worker

__all__ = ["Observed", "observe"]


class Observed(Collector):
    """Families that were read already.

    Args:
        families: what they are.
    """

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        """The families."""
        return iter(self._families)


def observe(session: Session) -> Observed:
    """Read everything."""
    return Observed((_jobs(session), *_workers(session), _deployments(session), _events(session), _mismatches(session)))


def _jobs(session: Session) -> Metric:
    family = GaugeMetricFamily("roundhouse_jobs", "Jobs.", labels=("kind", "state"))
    for kind, state, count in session.execute(select(Job.kind, Job.state, func.count()).group_by(Job.kind, Job.state)):
        family.add_metric((kind, state), count)
    return family


def _workers(session: Session) -> tuple[Metric, ...]:
    workers = GaugeMetricFamily("roundhouse_workers", "Workers that have not ended.", labels=("state",))
    free = GaugeMetricFamily("roundhouse_disk_free_bytes", "Free where a worker's home is.", labels=("host", "home"))
    total = GaugeMetricFamily("roundhouse_disk_bytes", "Of the disk where a worker's home is.", labels=("host", "home"))
    alive = case((is_alive(utc_now()), 1), else_=0).label("alive")
    there = select(Worker.host, Worker.home, Worker.disk_free, Worker.disk_total, alive).where(Worker.ended_at.is_(None))
    counted = {"alive": 0, "gone": 0}
    disks: dict[tuple[str, str], tuple[int, int]] = {}
    for row in session.execute(there.order_by(Worker.seen_at)):
        counted["alive" if row.alive else "gone"] += 1
        if row.alive:
            disks[row.host, row.home] = (row.disk_free, row.disk_total)  # the one heard of last knows best
    for state, count in counted.items():
        workers.add_metric((state,), count)
    for place, (left, whole) in disks.items():
        free.add_metric(place, left)
        total.add_metric(place, whole)
    return workers, free, total


def _deployments(session: Session) -> Metric:
    family = GaugeMetricFamily("roundhouse_deployments", "Deployments.", labels=("state",))
    state_now = case((is_silent(utc_now()), "silent"), else_=Deployment.state).label("state_now")
    for state, count in session.execute(select(state_now, func.count()).select_from(Deployment).group_by("state_now")):
        family.add_metric((state,), count)
    return family


def _events(session: Session) -> Metric:
    family = GaugeMetricFamily("roundhouse_integrity_events", "Rows that page checks stopped.", labels=("kind",))
    for kind, count in session.execute(select(IntegrityRecord.kind, func.count()).group_by(IntegrityRecord.kind)):
        family.add_metric((kind,), count)
    return family


def _mismatches(session: Session) -> Metric:
    family = GaugeMetricFamily(
        "roundhouse_deployment_tag_mismatches", "Of each running engine, since it began.", labels=("deployment", "name")
    )
    sample = DeploymentSample
    latest = select(sample.deployment_id, func.max(sample.at).label("at")).group_by(sample.deployment_id).subquery()
    of_each = (
        select(Deployment.id, Deployment.name, sample.values)
        .join(latest, latest.c.deployment_id == Deployment.id)
        .join(sample, (sample.deployment_id == latest.c.deployment_id) & (sample.at == latest.c.at))
        .where(Deployment.state.in_(LIVE_STATES))
    )
    for identity, name, values in session.execute(of_each):
        if (mismatches := values.get("tag_mismatches")) is not None:
            family.add_metric((identity, name), mismatches)
    return family
