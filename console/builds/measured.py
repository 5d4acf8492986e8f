"""What a job that measures has written down so far."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..jobs.records import JobRow
from ..models import BenchmarkRun, EvaluationRun, JobKind

__all__ = ["MEASURES", "page_of_record"]

MEASURES: tuple[JobKind, ...] = ("benchmark", "evaluate")
"""Kinds of jobs whose work is kept whatever ends them."""


def page_of_record(session: Session, job: JobRow) -> str | None:
    """The path of the page of its run or evaluation, of the latest attempt that began one; None where none has."""
    if job.kind not in MEASURES:
        return None
    table, path = (BenchmarkRun, "benchmarks") if job.kind == "benchmark" else (EvaluationRun, "evaluations")
    known = (table.job_id == job.id, table.deleted_at.is_(None))
    found = session.scalar(select(table.id).where(*known).order_by(table.began_at.desc(), table.id).limit(1))
    return None if found is None else f"/{path}/{found}"
