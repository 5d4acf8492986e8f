"""Workers: a list, and one of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Label, case, literal, not_, select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..errors import NotFoundError
from ..jobs.liveness import is_alive
from ..models import Job, Worker
from ..paging import Paged, PageOf, paged_rows
from .records import WorkerDetail, WorkerFilter, WorkerJob, WorkerRow, WorkerState

__all__ = ["find_worker", "is_worker_there", "list_workers", "worker_hosts"]

_LATEST = 20
_JOB_COLUMNS = [getattr(Job, name) for name in WorkerJob.model_fields]
_COLUMNS = [getattr(Worker, name) for name in WorkerRow.model_fields if hasattr(Worker, name)]


def list_workers(session: Session, wanted: WorkerFilter, page: PageOf, now: datetime | None = None) -> Paged[WorkerRow]:
    """A page of the workers that fit, in three statements: those that are there first, then the latest heard of.

    Args:
        session: where to read.
        wanted: which.
        page: which part.
        now: this moment; None: the clock's.
    """
    moment = now or utc_now()
    state = _state(moment)
    conditions: list[ColumnElement[bool]] = []
    if wanted.state is not None:
        conditions.append(_is(wanted.state, moment))
    if wanted.host is not None:
        conditions.append(Worker.host == wanted.host)
    there_first = case((is_alive(moment), 0), else_=1)
    ordered = select(*_COLUMNS, state).where(*conditions).order_by(there_first, Worker.seen_at.desc(), Worker.id)
    rows, total = paged_rows(session, ordered, page)
    jobs = _jobs_of(session, [row.id for row in rows])
    items = tuple(WorkerRow(**row._mapping, jobs=jobs.get(row.id, ())) for row in rows)
    return Paged(items=items, total=total, page=page.number, size=page.size)


def find_worker(session: Session, worker_id: str, now: datetime | None = None) -> WorkerDetail:
    """One worker, in three statements.

    Args:
        session: where to read.
        worker_id: which.
        now: this moment; None: the clock's.

    Raises:
        NotFoundError: there was never one of this id.
    """
    row = session.execute(select(*_COLUMNS, _state(now or utc_now())).where(Worker.id == worker_id)).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no worker {worker_id}")
    ended = select(*_JOB_COLUMNS).where(Job.worker_id == worker_id, Job.ended_at.is_not(None))
    had = tuple(WorkerJob(**job._mapping) for job in session.execute(ended.order_by(Job.id.desc()).limit(_LATEST)))
    return WorkerDetail(**row._mapping, jobs=_jobs_of(session, [worker_id]).get(worker_id, ()), had=had)


def worker_hosts(session: Session) -> tuple[str, ...]:
    """Every host that ever had a worker."""
    return tuple(session.scalars(select(Worker.host).distinct().order_by(Worker.host)))


def is_worker_there(session: Session, host: str, home: str, now: datetime | None = None) -> bool:
    """Whether a worker of this host and home is alive.

    Args:
        session: where to read.
        host: as the worker calls it.
        home: its path, whole and resolved.
        now: this moment; None: the clock's.
    """
    there = select(Worker.id).where(Worker.host == host, Worker.home == home, is_alive(now or utc_now()))
    return session.scalars(there.limit(1)).first() is not None


def _jobs_of(session: Session, workers: Sequence[str]) -> dict[str, tuple[WorkerJob, ...]]:
    running = select(Job.worker_id, *_JOB_COLUMNS).where(Job.worker_id.in_(workers), Job.state == "running").order_by(Job.id)
    found: dict[str, tuple[WorkerJob, ...]] = {}
    for row in session.execute(running):
        values = dict(row._mapping)
        worker_id = values.pop("worker_id")
        found[worker_id] = (*found.get(worker_id, ()), WorkerJob(**values))
    return found


def _state(now: datetime) -> Label[Any]:
    states = case((Worker.ended_at.is_not(None), literal("ended")), (is_alive(now), literal("alive")), else_=literal("gone"))
    return states.label("state")


def _is(state: WorkerState, now: datetime) -> ColumnElement[bool]:
    if state == "ended":
        return Worker.ended_at.is_not(None)
    return is_alive(now) if state == "alive" else Worker.ended_at.is_(None) & not_(is_alive(now))
