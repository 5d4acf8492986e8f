"""What somebody should look at, and where: each is gone again when it was dealt with, or after some days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, func, or_, select
from sqlalchemy.orm import Session, aliased

from ..deployments.silence import is_silent
from ..jobs.liveness import GONE_AFTER
from ..models import (
    BenchmarkRun,
    Deployment,
    EngineRecord,
    EngineReplica,
    EvaluationRun,
    IntegrityRecord,
    Job,
    JobKind,
    Worker,
)
from ..workers.records import disk_is_short
from .records import AttentionItem, HostDisk

__all__ = ["hosts_of", "needs_attention"]

_DAYS = timedelta(days=7)
_A_DAY = timedelta(days=1)
_MOST = 10
"""Of each sort."""
_VERBS: dict[JobKind, str] = {
    "build": "Building",
    "verify": "Verifying",
    "remove": "Removing",
    "drill": "The drill on",
    "benchmark": "The benchmark of",
    "evaluate": "The evaluation of",
}


def needs_attention(session: Session, workers: list[Worker], now: datetime) -> tuple[AttentionItem, ...]:
    """Everything, the latest first. Four statements.

    Args:
        session: where to read.
        workers: from :func:`hosts_of`.
        now: this moment.
    """
    found = [
        *_jobs(session, now),
        *_deployments(session, now),
        *_copies(session),
        *_events(session, now),
        *_workers(workers, now),
    ]
    return tuple(sorted(found, key=lambda item: item.at or now, reverse=True))


def hosts_of(session: Session, now: datetime) -> tuple[list[Worker], tuple[HostDisk, ...]]:
    """The workers that were there in the last days, and the disks of those that are there: one statement."""
    wanted = select(Worker).where(Worker.ended_at.is_(None), Worker.seen_at > now - _DAYS).order_by(Worker.host, Worker.seen_at)
    workers = list(session.scalars(wanted))
    alive = {(each.host, each.home): each for each in workers if _is_there(each, now)}
    return workers, tuple(_disk(each) for each in alive.values())


def _jobs(session: Session, now: datetime) -> Iterator[AttentionItem]:
    """Failed and interrupted ones that nobody asked for again. What deployments came to, and which copies are
    damaged, is told of them.
    """
    again = aliased(Job)
    same = (again.kind == Job.kind, again.subject == Job.subject, again.id > Job.id)
    repeated = select(again.id).where(*same, again.state.in_(("queued", "running", "succeeded"))).exists()
    known = (EngineReplica.engine_id == Job.engine_id, EngineReplica.host == Job.host, EngineReplica.home == Job.home)
    told = (Job.kind == "verify") & select(EngineReplica.id).where(*known, EngineReplica.state == "damaged").exists()
    ended = (Job.state.in_(("failed", "interrupted")), Job.ended_at > now - _DAYS, Job.kind.in_(tuple(_VERBS)))
    runs, evaluations = (
        select(func.max(kind.id)).where(kind.job_id == Job.id, kind.deleted_at.is_(None)).scalar_subquery()
        for kind in (BenchmarkRun, EvaluationRun)
    )
    measured = (runs.label("run"), evaluations.label("evaluation"))
    columns = (Job.id, Job.kind, Job.state, Job.subject, Job.error, Job.ended_at, *measured)
    for row in session.execute(select(*columns).where(*ended, ~repeated, ~told).order_by(Job.id.desc()).limit(_MOST)):
        failed = row.state == "failed"
        yield AttentionItem(
            key=f"job-{row.id}",
            tone="bad" if failed else "warn",
            what=f"{_VERBS[row.kind]} {row.subject} {'failed' if failed else 'was interrupted'}",
            detail=row.error,
            at=row.ended_at,
            **_where(row),
        )


def _where(row: Row[Any]) -> dict[str, str]:
    """Where a job is looked into: in what it measured, where there is something, which leads to its log."""
    if row.kind == "drill":
        return {"href": f"/integrity/drills/{row.id}", "to_do": "report"}
    if row.run is not None:
        return {"href": f"/benchmarks/{row.run}", "to_do": "what was measured"}
    if row.evaluation is not None:
        return {"href": f"/evaluations/{row.evaluation}", "to_do": "what was scored"}
    return {"href": f"/builds/{row.id}", "to_do": "log, retry"}


def _deployments(session: Session, now: datetime) -> Iterator[AttentionItem]:
    """Those that ended by themselves, and those of which nobody tells."""
    names = ("id", "name", "state", "reason", "changed_at", "seen_at", "host")
    columns = [getattr(Deployment, name) for name in names]
    wanted = or_(Deployment.state.in_(("failed", "dead")), is_silent(now))
    for row in session.execute(select(*columns).where(wanted).order_by(Deployment.changed_at.desc()).limit(_MOST)):
        if row.state not in ("failed", "dead"):
            yield AttentionItem(
                key=f"deployment-{row.id}",
                tone="warn",
                what=f"Deployment {row.name} is silent",
                detail=f"{row.host} tells nothing of it any more; it was {row.state}.",
                at=row.seen_at,
                href=f"/deployments/{row.id}",
                to_do="look, give up",
            )
            continue
        yield AttentionItem(
            key=f"deployment-{row.id}",
            tone="bad",
            what=f"Deployment {row.name} {'failed' if row.state == 'failed' else 'died'}",
            detail=row.reason,
            at=row.changed_at,
            href=f"/deployments/{row.id}",
            to_do="log",
        )


def _copies(session: Session) -> Iterator[AttentionItem]:
    columns = (EngineReplica.id, EngineReplica.engine_id, EngineReplica.host, EngineReplica.problem, EngineRecord.name)
    damaged = select(*columns).join(EngineRecord, EngineRecord.id == EngineReplica.engine_id)
    for row in session.execute(damaged.where(EngineReplica.state == "damaged").order_by(EngineReplica.id.desc()).limit(_MOST)):
        yield AttentionItem(
            key=f"copy-{row.id}",
            tone="bad",
            what=f"Engine {row.name} is damaged on {row.host}",
            detail=row.problem,
            at=None,
            href=f"/engines/{row.engine_id}?tab=replicas",
            to_do="look, delete",
        )


def _events(session: Session, now: datetime) -> Iterator[AttentionItem]:
    lately = select(func.count(), func.max(IntegrityRecord.at)).where(IntegrityRecord.at > now - _A_DAY)
    count, latest = session.execute(lately).one()
    if count:
        rows = "1 row was" if count == 1 else f"{count:,} rows were"
        yield AttentionItem(
            key="integrity",
            tone="bad",
            what=f"{rows} stopped by a page check in the last 24 hours",
            detail="Somebody's page was not theirs, or not what was written into it.",
            at=latest,
            href="/integrity",
            to_do="events",
        )


def _workers(workers: list[Worker], now: datetime) -> Iterator[AttentionItem]:
    latest = {(each.host, each.home): each for each in workers}  # by their last heartbeat, the latest last
    for each in latest.values():
        if not _is_there(each, now):
            yield AttentionItem(
                key=f"worker-{each.id}",
                tone="warn",
                what=f"The worker on {each.host} is gone",
                detail=f"Its home is {each.home}; jobs that only it can do wait.",
                at=each.seen_at,
                href="/workers",
                to_do="workers",
            )
        elif disk_is_short(each.disk_free, each.disk_total):
            yield AttentionItem(
                key=f"disk-{each.id}",
                tone="warn",
                what=f"The disk of {each.host} is nearly full",
                detail=f"{each.disk_free / 2**30:,.1f} of {each.disk_total / 2**30:,.0f} GiB are free where its home is.",
                at=None,
                href=f"/engines?host={each.host}&sort=-size",
                to_do="largest engines",
            )


def _is_there(worker: Worker, now: datetime) -> bool:
    return worker.seen_at > now - GONE_AFTER


def _disk(worker: Worker) -> HostDisk:
    free, total = worker.disk_free, worker.disk_total
    return HostDisk(host=worker.host, free=free, total=total, is_short=disk_is_short(free, total))
