"""Evaluations as they are read: lists, one of them with everything, and the gate of engines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from roundhouse.serve.accuracy.records import EvaluationHeader, TaskScore

from ..benchmarks.files import files_of
from ..benchmarks.records import BenchmarkJob
from ..benchmarks.silence import is_in_state, is_silent, shown_state
from ..benchmarks.stored import stored
from ..database.base import utc_now
from ..errors import NotFoundError
from ..models import EngineRecord, EvaluationRun, EvaluationScore, Job
from ..paging import Paged, PageOf, paged_rows
from .records import (
    EngineGate,
    EvaluationDetail,
    EvaluationFilter,
    EvaluationProgress,
    EvaluationRow,
    EvaluationSort,
    ScoreRow,
)

__all__ = ["evaluation_detail", "evaluation_progress", "gates_of", "list_evaluations", "require_evaluation"]

_NOT_COLUMNS = ("state", "silent", "scores")
_FACTS = [getattr(EvaluationRun, name) for name in EvaluationRow.model_fields if name not in _NOT_COLUMNS]
_SORTED_BY: dict[str, Any] = {
    "began": EvaluationRun.began_at,
    "worst": EvaluationRun.worst_difference,
    "name": EvaluationRun.name,
    "model": EvaluationRun.model,
}


def list_evaluations(
    session: Session, wanted: EvaluationFilter, page: PageOf, sort: EvaluationSort = "-began"
) -> Paged[EvaluationRow]:
    """A page of the evaluations that fit, in three statements."""
    now = utc_now()
    key = _SORTED_BY[sort.removeprefix("-")]
    order = (key.desc() if sort.startswith("-") else key).nulls_last()
    statement = _rows(now).where(*_fitting(wanted, now)).order_by(order, EvaluationRun.began_at.desc(), EvaluationRun.id)
    rows, total = paged_rows(session, statement, page)
    scores = _scores(session, [row.id for row in rows])
    items = tuple(EvaluationRow(**row._mapping, scores=scores[row.id]) for row in rows)
    return Paged(items=items, total=total, page=page.number, size=page.size)


def evaluation_detail(session: Session, evaluation_id: str) -> EvaluationDetail:
    """One evaluation with everything, in three statements.

    Raises:
        NotFoundError: there is none with this id.
        ConflictError: this version cannot read it.
    """
    known = select(EngineRecord.id).where(EngineRecord.id == EvaluationRun.engine_id).exists().label("engine_known")
    of_job = [getattr(Job, name).label(f"job_{name}") for name in BenchmarkJob.model_fields if name != "id"]
    more = (EvaluationRun.home, EvaluationRun.recorded_at, EvaluationRun.header)
    wanted = _rows(utc_now()).add_columns(*more, known, *of_job).outerjoin(Job, Job.id == EvaluationRun.job_id)
    row = session.execute(wanted.where(EvaluationRun.id == evaluation_id, EvaluationRun.deleted_at.is_(None))).one_or_none()
    if row is None:
        raise _missing(evaluation_id)
    records = select(EvaluationScore.record).where(EvaluationScore.evaluation_id == evaluation_id)
    what = f"evaluation {evaluation_id}"
    scores = tuple(stored(TaskScore, each, what) for each in session.scalars(records.order_by(EvaluationScore.position)))
    fields = {name: value for name, value in row._mapping.items() if name in EvaluationDetail.model_fields}
    job = {name: getattr(row, f"job_{name}") for name in BenchmarkJob.model_fields if name != "id"}
    return EvaluationDetail(
        **fields | {"header": stored(EvaluationHeader, row.header, what)},
        scores=tuple(_short(each) for each in scores),
        all_scores=scores,
        files=files_of(session, evaluation_id),
        job=None if row.job_id is None else BenchmarkJob(id=row.job_id, **job),
    )


def evaluation_progress(session: Session, evaluation_id: str) -> EvaluationProgress:
    """How far an evaluation is: one statement, which reads neither its scores nor its header.

    Raises:
        NotFoundError: there is none with this id.
    """
    run = EvaluationRun
    scored = select(func.count()).where(EvaluationScore.evaluation_id == run.id).correlate(run).scalar_subquery()
    columns = (run.id, shown_state(run, utc_now()).label("state"), run.began_at, run.job_id, scored.label("scored"))
    wanted = select(*columns, run.header["tasks"].label("tasks")).where(run.id == evaluation_id, run.deleted_at.is_(None))
    row = session.execute(wanted).one_or_none()
    if row is None:
        raise _missing(evaluation_id)
    return EvaluationProgress(**{**row._mapping, "tasks": len(row.tasks)})


def require_evaluation(session: Session, evaluation_id: str) -> None:
    """See that an evaluation is there: one statement.

    Raises:
        NotFoundError: it is not.
    """
    there = select(EvaluationRun.id).where(EvaluationRun.id == evaluation_id, EvaluationRun.deleted_at.is_(None))
    if session.scalar(there) is None:
        raise _missing(evaluation_id)


def gates_of(session: Session, engine_ids: Sequence[str]) -> dict[str, EngineGate]:
    """Whether engines have passed the gate, for each of them: one statement."""
    run = EvaluationRun
    measured = (run.engine_id.in_(engine_ids), run.state == "finished", run.gate != "not measured", run.deleted_at.is_(None))
    latest = func.row_number().over(partition_by=run.engine_id, order_by=(run.began_at.desc(), run.id)).label("place")
    columns = (run.engine_id, run.id, run.gate, run.began_at, run.worst_difference)
    ranked = select(*columns, latest).where(*measured).subquery()
    found = {row.engine_id: row for row in session.execute(select(ranked).where(ranked.c.place == 1))}
    none = EngineGate(state="not measured", evaluation_id=None, at=None, worst_difference=None)
    return {id_: _gate(found[id_]) if id_ in found else none for id_ in engine_ids}


def _gate(row: Any) -> EngineGate:
    return EngineGate(state=row.gate, evaluation_id=row.id, at=row.began_at, worst_difference=row.worst_difference)


def _rows(now: datetime) -> Any:
    state, silent = shown_state(EvaluationRun, now).label("state"), is_silent(EvaluationRun, now).label("silent")
    return select(*_FACTS, state, silent)


def _fitting(wanted: EvaluationFilter, now: datetime) -> list[ColumnElement[bool]]:
    run = EvaluationRun
    conditions: list[ColumnElement[bool]] = [run.deleted_at.is_(None)]
    equal = ((run.engine_id, wanted.engine), (run.gate, wanted.gate), (run.job_id, wanted.job))
    conditions += [column == value for column, value in equal if value is not None]
    conditions += [run.sought.contains(word, autoescape=True) for word in (wanted.text or "").lower().split()]
    if wanted.state is not None:
        conditions.append(is_in_state(run, wanted.state, now))
    return conditions


def _scores(session: Session, ids: Sequence[str]) -> defaultdict[str, tuple[ScoreRow, ...]]:
    found: defaultdict[str, tuple[ScoreRow, ...]] = defaultdict(tuple)
    columns = [getattr(EvaluationScore, name) for name in ScoreRow.model_fields]
    wanted = select(EvaluationScore.evaluation_id, *columns).where(EvaluationScore.evaluation_id.in_(ids))
    for row in session.execute(wanted.order_by(EvaluationScore.evaluation_id, EvaluationScore.position)):
        fields = {name: getattr(row, name) for name in ScoreRow.model_fields}
        found[row.evaluation_id] += (ScoreRow(**fields),)
    return found


def _short(score: TaskScore) -> ScoreRow:
    difference = None if score.difference is None else score.difference.value
    return ScoreRow(task=score.task, value=score.value, stderr=score.stderr, difference=difference)


def _missing(evaluation_id: str) -> NotFoundError:
    return NotFoundError(f"there is no evaluation {evaluation_id}")
