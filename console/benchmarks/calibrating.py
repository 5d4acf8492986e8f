"""What plans learn from the runs that are recorded here: decode rows of the same engine on the same hardware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from roundhouse.build.planner.decode import MeasuredRun
from roundhouse.build.planner.plan import Plan
from roundhouse.serve.benchmark.calibration import decode_rows_of, is_of
from roundhouse.serve.benchmark.points import Point
from roundhouse.serve.benchmark.records import BenchmarkHeader

from ..models import BenchmarkPoint, BenchmarkRun

__all__ = ["MeasuredHere", "measured_here"]

MeasuredHere = Callable[[Plan], Sequence[MeasuredRun]]
"""Decode rows of a plan's engine, all of one run."""
_Run = tuple[BenchmarkHeader, list[Point]]
_LOOKED_AT = 8
"""Of the newest runs that may be it: a plan is made while somebody types."""


def measured_here(session: Session) -> MeasuredHere:
    """Looks runs up in a database: two statements for each recipe, on however many hosts it is planned."""
    known: dict[tuple[str, ...], list[_Run]] = {}

    def find(plan: Plan) -> Sequence[MeasuredRun]:
        recipe = plan.recipe
        key = (recipe.model, recipe.target, recipe.weights, recipe.kv_cache)
        if key not in known:
            known[key] = _runs(session, plan)
        for header, points in known[key]:
            if is_of(header, plan) and (rows := decode_rows_of(header, points)):
                return rows
        return ()

    return find


def _runs(session: Session, plan: Plan) -> list[_Run]:
    """Runs that may be of the plan's engine, the newest first; only a header tells whether they are."""
    headers = {id_: header for id_, told in session.execute(_likely(plan)) if (header := _header(told)) is not None}
    points: dict[str, list[Point]] = {id_: [] for id_ in headers}
    measured = select(BenchmarkPoint.benchmark_id, BenchmarkPoint.record).where(BenchmarkPoint.benchmark_id.in_(headers))
    for id_, record in session.execute(measured):
        if (point := _point(record)) is not None:
            points[id_].append(point)
    return [(header, points[id_]) for id_, header in headers.items()]


def _likely(plan: Plan) -> Select[tuple[str, dict[str, Any]]]:
    recipe = plan.recipe
    return (
        select(BenchmarkRun.id, BenchmarkRun.header)
        .where(
            BenchmarkRun.deleted_at.is_(None),
            BenchmarkRun.state == "finished",
            BenchmarkRun.is_imported.is_(False),
            BenchmarkRun.model == recipe.model,
            BenchmarkRun.target == recipe.target,
            BenchmarkRun.weights == recipe.weights,
            BenchmarkRun.kv_cache == recipe.kv_cache,
        )
        .order_by(BenchmarkRun.began_at.desc(), BenchmarkRun.id)
        .limit(_LOOKED_AT)
    )


def _header(told: dict[str, Any]) -> BenchmarkHeader | None:
    try:
        return BenchmarkHeader.model_validate(told)
    except ValidationError:  # of a worker of another version
        return None


def _point(told: dict[str, Any]) -> Point | None:
    try:
        return Point.model_validate(told)
    except ValidationError:
        return None
