"""Engines as they are read: lists, and one of them with everything that hangs on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, case, func, or_, select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..deployments.silence import was_silent
from ..errors import NotFoundError
from ..evaluations.queries import gates_of
from ..evaluations.records import EngineGate
from ..models import (
    LIVE_STATES,
    BenchmarkRun,
    Deployment,
    EngineRecord,
    EngineReplica,
    EvaluationRun,
    IntegrityRecord,
    Job,
)
from ..paging import Paged, PageOf, paged_rows
from .records import (
    EngineDeployment,
    EngineDetail,
    EngineFilter,
    EngineJob,
    EngineRow,
    EngineSort,
    EngineState,
    ReplicaRow,
    SiblingRow,
)

__all__ = ["engine_detail", "hosts_with_engines", "list_engines"]

_MOST_RELATED = 50
"""Deployments, siblings and jobs on an engine's page, of each."""
_SORTED_BY: dict[str, Any] = {
    "name": EngineRecord.name,
    "model": EngineRecord.model,
    "size": EngineRecord.total_bytes,
    "kv_tokens": EngineRecord.kv_tokens,
    "agreement": EngineRecord.top1_agreement,
    "kl": EngineRecord.kl,
    "made": EngineRecord.created_at,
}
_FACTS = [getattr(EngineRecord, name) for name in EngineRow.model_fields if hasattr(EngineRecord, name)]


def list_engines(session: Session, wanted: EngineFilter, page: PageOf, sort: EngineSort = "-made") -> Paged[EngineRow]:
    """A page of the engines that fit, in six statements."""
    key = _SORTED_BY[sort.removeprefix("-")]
    order = key.desc() if sort.startswith("-") else key
    # Ids first: a row's manifest is large, and sorting whole rows would read it for every engine.
    ids, total = paged_rows(session, select(EngineRecord.id).where(*_fitting(wanted)).order_by(order, EngineRecord.id), page)
    rows = {row.id: row for row in session.execute(select(*_FACTS).where(EngineRecord.id.in_(ids)))}
    replicas = _replicas(session, ids)
    live = _live_deployments(session, ids)
    gates = gates_of(session, ids)
    items = tuple(EngineRow(**_row(rows[id_], replicas[id_], live.get(id_, 0), gates[id_])) for id_ in ids)
    return Paged(items=items, total=total, page=page.number, size=page.size)


def hosts_with_engines(session: Session) -> tuple[str, ...]:
    """Hosts that have a copy of any engine, by name: one statement."""
    return tuple(session.scalars(select(EngineReplica.host).distinct().order_by(EngineReplica.host)))


def engine_detail(session: Session, engine_id: str) -> EngineDetail:
    """One engine with everything, in nine statements.

    Raises:
        NotFoundError: there is none with this id.
    """
    statement = select(*_FACTS, EngineRecord.recorded_at, EngineRecord.manifest).where(EngineRecord.id == engine_id)
    row = session.execute(statement).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no engine {engine_id}")
    replicas = _replicas(session, [engine_id])[engine_id]
    deployments = _deployments(session, engine_id)
    gate = gates_of(session, [engine_id])[engine_id]
    events = select(func.count()).select_from(IntegrityRecord).where(IntegrityRecord.engine_id == engine_id)
    return EngineDetail(
        **_row(row, replicas, _live_deployments(session, [engine_id]).get(engine_id, 0), gate),
        recorded_at=row.recorded_at,
        replicas=replicas,
        deployments=deployments,
        siblings=_siblings(session, engine_id, row.model, row.manifest.get("model_fingerprint")),
        **_jobs(session, engine_id),
        **_measured(session, engine_id),
        evaluated=gate,
        integrity_events=session.scalar(events) or 0,
        manifest=row.manifest,
    )


def _fitting(wanted: EngineFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    for column, value in (
        (EngineRecord.target, wanted.target),
        (EngineRecord.weights, wanted.weights),
        (EngineRecord.kv_cache, wanted.kv_cache),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.text:
        words = (EngineRecord.name, EngineRecord.model)
        begins = EngineRecord.id.istartswith(wanted.text, autoescape=True)
        conditions.append(or_(begins, *(word.icontains(wanted.text, autoescape=True) for word in words)))
    if wanted.host is not None:
        conditions.append(_has_replica(EngineReplica.host == wanted.host))
    if wanted.state in ("here", "damaged"):
        conditions.append(_has_replica())
    if wanted.state == "gone":
        conditions.append(~_has_replica())
    if wanted.state in ("present", "damaged"):
        whole = _has_replica(EngineReplica.state == "present")
        conditions.append(whole if wanted.state == "present" else ~whole)
    return conditions


def _has_replica(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    return select(EngineReplica.id).where(EngineReplica.engine_id == EngineRecord.id, *conditions).exists()


def _replicas(session: Session, ids: Sequence[str]) -> defaultdict[str, tuple[ReplicaRow, ...]]:
    found: defaultdict[str, tuple[ReplicaRow, ...]] = defaultdict(tuple)
    wanted = select(EngineReplica).where(EngineReplica.engine_id.in_(ids)).order_by(EngineReplica.host, EngineReplica.home)
    for each in session.scalars(wanted):
        found[each.engine_id] += (ReplicaRow(**{name: getattr(each, name) for name in ReplicaRow.model_fields}),)
    return found


def _live_deployments(session: Session, ids: Sequence[str]) -> dict[str, int]:
    live = (Deployment.engine_id.in_(ids), Deployment.state.in_(LIVE_STATES))
    counted = select(Deployment.engine_id, func.count()).where(*live).group_by(Deployment.engine_id)
    return {row[0]: row[1] for row in session.execute(counted)}


def _row(row: Any, replicas: Iterable[ReplicaRow], live: int, gate: EngineGate) -> dict[str, Any]:
    hosts = {
        state: tuple(dict.fromkeys(each.host for each in replicas if each.state == state)) for state in ("present", "damaged")
    }
    state: EngineState = "present" if hosts["present"] else "damaged" if hosts["damaged"] else "gone"
    facts = {name: getattr(row, name) for name in EngineRow.model_fields if hasattr(row, name)}
    return facts | {
        "state": state,
        "hosts": hosts["present"],
        "damaged_hosts": hosts["damaged"],
        "live_deployments": live,
        "gate": gate.state,
    }


def _deployments(session: Session, engine_id: str) -> tuple[EngineDeployment, ...]:
    live = case((Deployment.state.in_(LIVE_STATES), 0), else_=1)
    wanted = select(Deployment).where(Deployment.engine_id == engine_id).order_by(live, Deployment.created_at.desc())
    found = session.scalars(wanted.limit(_MOST_RELATED))
    now = utc_now()
    return tuple(_deployment(each, now) for each in found)


def _deployment(row: Deployment, now: datetime) -> EngineDeployment:
    fields = {name: getattr(row, name) for name in EngineDeployment.model_fields if hasattr(row, name)}
    return EngineDeployment(**fields, is_live=row.state in LIVE_STATES, silent=was_silent(row, now))


def _siblings(session: Session, engine_id: str, model: str, fingerprint: str | None) -> tuple[SiblingRow, ...]:
    names = [name for name in SiblingRow.model_fields if name != "same_input"]
    columns = [getattr(EngineRecord, name) for name in names]
    own = EngineRecord.manifest["model_fingerprint"].as_string().label("fingerprint")
    others = select(*columns, own).where(EngineRecord.model == model, EngineRecord.id != engine_id)
    found = session.execute(others.order_by(EngineRecord.created_at.desc()).limit(_MOST_RELATED))
    return tuple(
        SiblingRow(**{name: getattr(row, name) for name in names}, same_input=row.fingerprint == fingerprint) for row in found
    )


def _measured(session: Session, engine_id: str) -> dict[str, Any]:
    """How often it was measured, and how fast it was the last time: one statement."""
    runs = (BenchmarkRun.engine_id == engine_id, BenchmarkRun.deleted_at.is_(None))
    evaluations = (EvaluationRun.engine_id == engine_id, EvaluationRun.deleted_at.is_(None))
    finished = (*runs, BenchmarkRun.state == "finished", BenchmarkRun.tokens_per_s_most.is_not(None))
    newest = select(BenchmarkRun.id).where(*finished).order_by(BenchmarkRun.began_at.desc(), BenchmarkRun.id).limit(1)
    counts = select(
        select(func.count()).select_from(BenchmarkRun).where(*runs).scalar_subquery().label("benchmarks"),
        select(func.count()).select_from(EvaluationRun).where(*evaluations).scalar_subquery().label("evaluations"),
    ).subquery()
    latest = (
        BenchmarkRun.id.label("latest_benchmark_id"),
        BenchmarkRun.tokens_per_s_most,
        BenchmarkRun.concurrency_most,
    )
    wanted = select(*counts.c, *latest).select_from(counts).outerjoin(BenchmarkRun, BenchmarkRun.id == newest.scalar_subquery())
    return dict(session.execute(wanted).one()._mapping)


def _jobs(session: Session, engine_id: str) -> dict[str, Any]:
    columns = [getattr(Job, name) for name in EngineJob.model_fields]
    of_it = select(*columns).where(Job.engine_id == engine_id)
    latest = session.execute(of_it.order_by(Job.id.desc()).limit(_MOST_RELATED))
    jobs = tuple(EngineJob(**row._mapping) for row in latest)
    made = of_it.where(Job.kind == "build", Job.state == "succeeded").order_by(Job.id).limit(1)
    row = session.execute(made).one_or_none()
    return {"jobs": jobs, "built_by": None if row is None else EngineJob(**row._mapping)}
