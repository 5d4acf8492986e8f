"""The home page, in a fixed number of statements."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from ..builds.stages import BUILD_STAGES
from ..database.base import utc_now
from ..deployments.actions import SERVED_TARGET
from ..integrity.queries import verdict
from ..models import LIVE_JOB_STATES, Deployment, EngineRecord, EngineReplica, Job, Stage
from .attention import hosts_of, needs_attention
from .records import FirstSteps, Overview, StageOfWork, WorkRow
from .serving import serving_now

__all__ = ["overview"]

_MOST_WORK = 12


def overview(session: Session, now: datetime | None = None) -> Overview:
    """Everything on the home page, in twelve statements.

    Args:
        session: where to read.
        now: this moment; None: the clock's.
    """
    now = now or utc_now()
    serving, serving_count, totals = serving_now(session, now)
    workers, hosts = hosts_of(session, now)
    return Overview(
        first_steps=_first_steps(session),
        serving=serving,
        serving_count=serving_count,
        work=_work(session),
        work_count=session.scalar(select(func.count()).select_from(Job).where(Job.state.in_(LIVE_JOB_STATES))) or 0,
        attention=needs_attention(session, workers, now),
        integrity=verdict(totals),
        hosts=hosts,
    )


def _first_steps(session: Session) -> FirstSteps:
    built = select(Job.id).where(Job.kind == "build").exists()
    copy = select(EngineReplica.id).where(EngineReplica.engine_id == EngineRecord.id, EngineReplica.state == "present")
    served = copy.exists(), EngineRecord.target == SERVED_TARGET
    newest, name = (
        select(column).where(*served).order_by(EngineRecord.created_at.desc()).limit(1).scalar_subquery()
        for column in (EngineRecord.id, EngineRecord.name)
    )
    has_engine, has_deployed = select(EngineRecord.id).exists(), select(Deployment.id).exists()
    planned, made, deployed, id_, called = session.execute(select(built, has_engine, has_deployed, newest, name)).one()
    return FirstSteps(has_planned=planned or made, has_engine=made, has_deployed=deployed, engine_id=id_, engine_name=called)


def _work(session: Session) -> tuple[WorkRow, ...]:
    """Running jobs, then waiting ones, each in the order in which they were asked for: two statements."""
    running_first = case((Job.state == "running", 0), else_=1)
    names = [name for name in WorkRow.model_fields if name != "stages"]
    columns = [getattr(Job, name) for name in names]
    live = select(*columns, Job.attempt).where(Job.state.in_(LIVE_JOB_STATES)).order_by(running_first, Job.id).limit(_MOST_WORK)
    rows = session.execute(live).all()
    attempts = {row.id: row.attempt for row in rows}
    stages: dict[int, list[StageOfWork]] = {}
    for each in session.scalars(select(Stage).where(Stage.job_id.in_(attempts)).order_by(Stage.position)):
        if each.attempt == attempts[each.job_id]:
            stages.setdefault(each.job_id, []).append(_stage(each))
    return tuple(
        WorkRow(**{name: getattr(row, name) for name in names}, stages=_line(row.kind, stages.get(row.id, []))) for row in rows
    )


def _line(kind: str, begun: list[StageOfWork]) -> tuple[StageOfWork, ...]:
    """Stages that began, and of a build under way those that will."""
    if kind != "build" or not begun:
        return tuple(begun)
    names = list(BUILD_STAGES)
    at = max((names.index(each.name) for each in begun if each.name in names), default=-1)
    to_come = (StageOfWork(name=name, what=BUILD_STAGES[name], state="waiting", done=None) for name in names[at + 1 :])
    return (*begun, *to_come)


def _stage(stage: Stage) -> StageOfWork:
    state = "running" if stage.ended_at is None else "done"
    return StageOfWork(name=stage.name, what=stage.what, state=state, done=stage.done)
