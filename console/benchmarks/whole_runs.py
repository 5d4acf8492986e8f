"""Runs as their folders would be read, with every point: for files, and for one on its own page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.points import Point, PrefillPoint
from roundhouse.serve.benchmark.records import Benchmark, BenchmarkHeader

from ..database.base import utc_now
from ..errors import NotFoundError
from ..models import BenchmarkPoint, BenchmarkPrefill, BenchmarkRun
from .silence import shown_state
from .stored import stored

__all__ = ["benchmark_records", "points_by_run", "prefill_by_run"]


def benchmark_records(session: Session, ids: Sequence[str]) -> tuple[Benchmark, ...]:
    """Runs in the order of their ids, however many, in three statements.

    Raises:
        NotFoundError: there is none with one of these ids.
        ConflictError: this version cannot read one.
    """
    columns = (BenchmarkRun.id, BenchmarkRun.header, BenchmarkRun.ended_at, BenchmarkRun.problem)
    wanted = select(*columns, shown_state(BenchmarkRun, utc_now()).label("state"))
    there = wanted.where(BenchmarkRun.id.in_(ids), BenchmarkRun.deleted_at.is_(None))
    rows = {row.id: row for row in session.execute(there)}
    if missing := [id_ for id_ in ids if id_ not in rows]:
        raise NotFoundError(f"there is no benchmark run {', '.join(missing)}")
    points, prefill = points_by_run(session, ids), prefill_by_run(session, ids)
    return tuple(
        Benchmark(
            header=stored(BenchmarkHeader, rows[id_].header, f"benchmark run {id_}"),
            state=rows[id_].state,
            ended_at=rows[id_].ended_at,
            problem=rows[id_].problem,
            points=tuple(points.get(id_, ())),
            prefill=tuple(prefill.get(id_, ())),
        )
        for id_ in ids
    )


def points_by_run(session: Session, ids: Sequence[str]) -> Mapping[str, Sequence[Point]]:
    """All points of some runs, by concurrency and repeat: one statement.

    Raises:
        ConflictError: this version cannot read one.
    """
    found: dict[str, list[Point]] = defaultdict(list)
    wanted = select(BenchmarkPoint.benchmark_id, BenchmarkPoint.record).where(BenchmarkPoint.benchmark_id.in_(ids))
    order = (BenchmarkPoint.benchmark_id, BenchmarkPoint.concurrency, BenchmarkPoint.repeat)
    for id_, record in session.execute(wanted.order_by(*order)):
        found[id_].append(stored(Point, record, f"benchmark run {id_}"))
    return found


def prefill_by_run(session: Session, ids: Sequence[str]) -> Mapping[str, Sequence[PrefillPoint]]:
    """All prefill points of some runs, by prompt length and repeat: one statement.

    Raises:
        ConflictError: this version cannot read one.
    """
    found: dict[str, list[PrefillPoint]] = defaultdict(list)
    wanted = select(BenchmarkPrefill.benchmark_id, BenchmarkPrefill.record).where(BenchmarkPrefill.benchmark_id.in_(ids))
    order = (BenchmarkPrefill.benchmark_id, BenchmarkPrefill.input_tokens, BenchmarkPrefill.repeat)
    for id_, record in session.execute(wanted.order_by(*order)):
        found[id_].append(stored(PrefillPoint, record, f"benchmark run {id_}"))
    return found
