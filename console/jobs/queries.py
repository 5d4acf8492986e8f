"""Jobs as they are read: lists, one of them, its log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select
from sqlalchemy.orm import Session, aliased

from ..errors import NotFoundError
from ..models import Job, JobKind, JobState, LogLine, Stage, Worker
from ..paging import Paged, PageOf, paged_rows
from .ending import FORGOTTEN
from .records import AttemptRow, JobDetail, JobFilter, JobRow, LogRow, StageRow

__all__ = ["count_by_state", "job_detail", "list_jobs", "log_lines"]

MOST_LINES = 5_000
"""Of a log, at a time."""
_LISTED = [getattr(Job, name) for name in JobRow.model_fields if name != "stage"]
_SHOWN = [getattr(Job, name) for name in JobDetail.model_fields if hasattr(Job, name)]


def list_jobs(session: Session, wanted: JobFilter, page: PageOf) -> Paged[JobRow]:
    """A page of the jobs that fit, the newest first, in three statements."""
    rows, total = paged_rows(session, _fitting(select(*_LISTED), wanted).order_by(Job.id.desc()), page)
    stages = _latest_stages(session, rows)
    items = tuple(JobRow(**row._mapping, stage=stages.get(row.id)) for row in rows)
    return Paged(items=items, total=total, page=page.number, size=page.size)


def job_detail(session: Session, job_id: int) -> JobDetail:
    """One job with everything but its log, in three statements.

    Raises:
        NotFoundError: there is none with this number.
    """
    lost = func.coalesce(Job.sealed == FORGOTTEN, False).label("lost_secrets")
    of_it = select(*_SHOWN, Worker.host.label("worker_host"), lost).join(Worker, Worker.id == Job.worker_id, isouter=True)
    row = session.execute(of_it.where(Job.id == job_id)).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no job {job_id}")
    stages = session.scalars(select(Stage).where(Stage.job_id == job_id).order_by(Stage.attempt, Stage.position)).all()
    count = select(LogLine.attempt, func.max(LogLine.number)).where(LogLine.job_id == job_id).group_by(LogLine.attempt)
    lines = {row[0]: row[1] for row in session.execute(count)}
    began: dict[int, Any] = {}
    for stage in stages:
        began.setdefault(stage.attempt, stage.began_at)
    latest = tuple(_stage_row(stage) for stage in stages if stage.attempt == row.attempt)
    attempts = (AttemptRow(number=n, began_at=began.get(n), lines=lines.get(n, 0)) for n in range(1, row.attempt + 1))
    return JobDetail(**row._mapping, stage=latest[-1] if latest else None, stages=latest, attempts=tuple(attempts))


def log_lines(session: Session, job_id: int, attempt: int, *, after: int = 0, most: int = MOST_LINES) -> list[LogRow]:
    """Lines of an attempt's log.

    Args:
        session: where to read.
        job_id: whose.
        attempt: from 1.
        after: the number of the last line that is known already.
        most: so many lines at most.
    """
    own = (LogLine.job_id == job_id, LogLine.attempt == attempt, LogLine.number > after)
    lines = select(LogLine.number, LogLine.at, LogLine.text).where(*own).order_by(LogLine.number)
    return [LogRow(**row._mapping) for row in session.execute(lines.limit(max(0, min(most, MOST_LINES))))]


def count_by_state(session: Session, kinds: Sequence[JobKind] = ()) -> dict[JobState, int]:
    """How many jobs of these kinds (empty: of any) are in each state; states with none are left out."""
    statement = select(Job.state, func.count()).group_by(Job.state)
    if kinds:
        statement = statement.where(Job.kind.in_(kinds))
    return {cast(JobState, state): count for state, count in session.execute(statement)}


def _fitting(statement: Select[Any], wanted: JobFilter) -> Select[Any]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.kinds:
        conditions.append(Job.kind.in_(wanted.kinds))
    if wanted.states:
        conditions.append(Job.state.in_(wanted.states))
    if wanted.requested_by:
        conditions.append(Job.requested_by == wanted.requested_by)
    if wanted.engine_id is not None:
        conditions.append(Job.engine_id == wanted.engine_id)
    if wanted.deployment_id is not None:
        conditions.append(Job.deployment_id == wanted.deployment_id)
    if wanted.text:
        words = [Job.sought.contains(wanted.text.lower(), autoescape=True)]
        if wanted.text.isascii() and wanted.text.isdigit() and len(wanted.text) < 10:
            words.append(Job.id == int(wanted.text))
        conditions.append(or_(*words))
    return statement.where(*conditions)


def _latest_stages(session: Session, jobs: Sequence[Row[Any]]) -> dict[int, StageRow]:
    """What each of these jobs did last in its latest attempt, by job."""
    own = aliased(Stage)
    last = select(func.max(own.position)).where(own.job_id == Stage.job_id, own.attempt == Stage.attempt).scalar_subquery()
    latest = and_(Job.id == Stage.job_id, Job.attempt == Stage.attempt)
    told = select(Stage.job_id, *(getattr(Stage, name) for name in StageRow.model_fields)).join(Job, latest)
    found = session.execute(told.where(Stage.job_id.in_([job.id for job in jobs]), Stage.position == last))
    return {row.job_id: StageRow(**{name: getattr(row, name) for name in StageRow.model_fields}) for row in found}


def _stage_row(stage: Stage) -> StageRow:
    return StageRow(**{name: getattr(stage, name) for name in StageRow.model_fields})
