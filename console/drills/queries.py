"""Drills as they are read: lists, and one of them with its report."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ..errors import NotFoundError
from ..models import EngineRecord, EngineReplica, Job
from ..paging import Paged, PageOf, paged_rows
from .records import DrillDetail, DrillReportRow, DrillRow

__all__ = ["drill_detail", "engines_to_drill", "list_drills"]

_MOST_ENGINES = 200
_SHOWN = (
    Job.id,
    Job.state,
    Job.engine_id,
    Job.subject,
    Job.requested_by,
    Job.created_at,
    Job.started_at,
    Job.ended_at,
    # A report is long, and a list needs little of it.
    Job.result["passed"].as_boolean().label("passed"),
    Job.result["faults"].as_integer().label("faults"),
    func.coalesce(Job.result["seed"].as_integer(), Job.payload["seed"].as_integer()).label("seed"),
)


def list_drills(session: Session, page: PageOf) -> Paged[DrillRow]:
    """A page of the drills, the newest first, in two statements."""
    rows, total = paged_rows(session, select(*_SHOWN).where(Job.kind == "drill").order_by(Job.id.desc()), page)
    return Paged(items=tuple(DrillRow(**row._mapping) for row in rows), total=total, page=page.number, size=page.size)


def drill_detail(session: Session, job_id: int) -> DrillDetail:
    """One drill, in one statement.

    Raises:
        NotFoundError: there is none with this number.
    """
    wanted = select(*_SHOWN, Job.host, Job.error, Job.hint, Job.payload.label("wish"), Job.result).where(
        Job.id == job_id, Job.kind == "drill"
    )
    row = session.execute(wanted).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no drill {job_id}")
    fields = {name: value for name, value in row._mapping.items() if name != "result"}
    return DrillDetail(**fields, report=_report(row.result))


def engines_to_drill(session: Session) -> list[tuple[str, str]]:
    """Id and name of the engines that a host has whole, by name: one statement."""
    whole = select(EngineReplica.id).where(EngineReplica.engine_id == EngineRecord.id, EngineReplica.state == "present")
    wanted = select(EngineRecord.id, EngineRecord.name).where(whole.exists()).order_by(EngineRecord.name, EngineRecord.id)
    return [(row.id, row.name) for row in session.execute(wanted.limit(_MOST_ENGINES))]


def _report(result: dict[str, Any] | None) -> DrillReportRow | None:
    """None while there is none, and where another version wrote it in a form that this one cannot read."""
    try:
        return None if result is None else DrillReportRow.model_validate(result)
    except ValidationError:
        return None
