"""Engines side by side, each with the runs that count for it.

Of an engine's finished runs that were measured here at the concurrency asked for, one counts: of those that nothing disturbed
at that concurrency the newest, and where all were disturbed the newest of all. Prefill comes from the newest finished run that
measured it, accuracy from the newest finished evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, func, select
from sqlalchemy.orm import Session

from roundhouse.build.planner.decode import price_per_million

from ..models import BenchmarkLevel, BenchmarkPoint, BenchmarkRun, EngineRecord, EvaluationRun, IntegrityRecord
from .json_values import whole_number
from .row_records import SORTED_BY, EngineFacts, EnginesAsked, EngineWanted, RowSort

__all__ = ["engine_rows"]

_DONE = (
    BenchmarkRun.deleted_at.is_(None),
    BenchmarkRun.state == "finished",
    BenchmarkRun.engine_id.is_not(None),
    BenchmarkRun.is_imported.is_(False),  # what others measured is none of our engines' speed
)
_PARALLEL = ("tensor_parallel", "pipeline_parallel")
_CHECKS, _MISMATCHES = ("tag_checks", "content_checks"), ("tag_mismatches", "content_mismatches")
_FACTS = ("id", "name", "model", "target", "role", "weights", "kv_cache", "checkpoint_bytes")


@dataclass(frozen=True)
class _Counted:
    """Of one run, at one concurrency."""

    kv_tokens: int | None = None
    checks: int = 0
    mismatches: int = 0

    def and_also(self, told: Mapping[str, Any], page_tokens: int | None) -> _Counted:
        """With what was counted in one more repeat."""
        pages = whole_number(told.get("kv_pages"))
        tokens = None if pages is None or page_tokens is None else pages * page_tokens
        known = [each for each in (self.kv_tokens, tokens) if each is not None]
        checks, mismatches = (sum(whole_number(told.get(key)) or 0 for key in keys) for keys in (_CHECKS, _MISMATCHES))
        return _Counted(max(known, default=None), self.checks + checks, self.mismatches + mismatches)


def engine_rows(session: Session, wanted: EngineWanted, sort: RowSort, usual_price: float | None) -> EnginesAsked:
    """Every engine that was measured or evaluated, in eight statements.

    Args:
        session: where to read.
        wanted: which, and at what concurrency and price.
        sort: what they are sorted by.
        usual_price: of an hour, where ``wanted`` says none.
    """
    price = wanted.price if wanted.price is not None else usual_price
    runs = _by_engine(session, _counting(wanted.at))
    prefill = _by_engine(session, _prefill())
    evaluations = _by_engine(session, _evaluated())
    ids = runs.keys() | prefill.keys() | evaluations.keys()
    engines = session.execute(_engines(wanted.model).where(EngineRecord.id.in_(ids))).all()
    counted = _counted(session, [row.run for row in runs.values()], wanted.at)
    events = _events(session, [row.id for row in engines])
    rows = [
        _facts(row, runs.get(row.id), prefill.get(row.id), evaluations.get(row.id), counted, events.get(row.id, 0), price)
        for row in engines
    ]
    levels = select(BenchmarkLevel.concurrency).join(BenchmarkRun).where(*_DONE).distinct()
    return EnginesAsked(_sorted(rows, sort), tuple(sorted(session.scalars(levels))), price)


def _by_engine(session: Session, wanted: Any) -> dict[str, Row[Any]]:
    """The first of each engine."""
    ranked = wanted.subquery()
    return {row.engine_id: row for row in session.execute(select(ranked).where(ranked.c.rank == 1))}


def _counting(at: int) -> Any:
    level = and_(BenchmarkLevel.benchmark_id == BenchmarkRun.id, BenchmarkLevel.concurrency == at)
    best = (case((BenchmarkLevel.noisy > 0, 1), else_=0), BenchmarkRun.began_at.desc(), BenchmarkRun.id)
    return (
        select(
            BenchmarkRun.engine_id,
            BenchmarkRun.id.label("run"),
            BenchmarkRun.began_at,
            BenchmarkRun.hardware,
            BenchmarkLevel.output_tokens_per_s,
            BenchmarkLevel.noisy,
            func.row_number().over(partition_by=BenchmarkRun.engine_id, order_by=best).label("rank"),
        )
        .join(BenchmarkLevel, level)
        .where(*_DONE)
    )


def _prefill() -> Any:
    columns = (BenchmarkRun.engine_id, BenchmarkRun.id.label("run"), BenchmarkRun.prefill_tokens_per_s)
    newest = _newest_first(BenchmarkRun)
    return select(*columns, newest).where(*_DONE, BenchmarkRun.prefill_tokens_per_s.is_not(None))


def _evaluated() -> Any:
    columns = (
        EvaluationRun.engine_id,
        EvaluationRun.id.label("evaluation"),
        EvaluationRun.gate,
        EvaluationRun.worst_difference,
    )
    done = (EvaluationRun.deleted_at.is_(None), EvaluationRun.state == "finished", EvaluationRun.engine_id.is_not(None))
    return select(*columns, _newest_first(EvaluationRun)).where(*done)


def _newest_first(table: type[BenchmarkRun] | type[EvaluationRun]) -> ColumnElement[int]:
    order = (table.began_at.desc(), table.id)
    return func.row_number().over(partition_by=table.engine_id, order_by=order).label("rank")


def _engines(model: str | None) -> Any:
    parallel = [EngineRecord.manifest[("recipe", key)].label(key) for key in _PARALLEL]
    columns = [getattr(EngineRecord, name) for name in _FACTS]
    wanted = select(*columns, EngineRecord.kv_tokens, *parallel)
    return wanted if model is None else wanted.where(EngineRecord.model == model)


def _counted(session: Session, runs: Sequence[str], at: int) -> dict[str, _Counted]:
    """What the engines counted in some runs at one concurrency, and the tokens that their pools held."""
    sizes = select(BenchmarkRun.id, BenchmarkRun.header[("subject", "settings", "page_tokens")])
    page_tokens = {id_: whole_number(told) for id_, told in session.execute(sizes.where(BenchmarkRun.id.in_(runs)))}
    counts = select(BenchmarkPoint.benchmark_id, BenchmarkPoint.record["engine"])
    found: dict[str, _Counted] = {}
    for id_, told in session.execute(counts.where(BenchmarkPoint.benchmark_id.in_(runs), BenchmarkPoint.concurrency == at)):
        if told is not None:  # an engine that did not count
            found[id_] = found.get(id_, _Counted()).and_also(told, page_tokens.get(id_))
    return found


def _events(session: Session, engines: Sequence[str]) -> dict[str, int]:
    wanted = select(IntegrityRecord.engine_id, func.count()).where(IntegrityRecord.engine_id.in_(engines))
    return {row[0]: row[1] for row in session.execute(wanted.group_by(IntegrityRecord.engine_id))}


def _facts(
    engine: Row[Any],
    run: Row[Any] | None,
    prefill: Row[Any] | None,
    evaluation: Row[Any] | None,
    counted: dict[str, _Counted],
    events: int,
    price: float | None,
) -> EngineFacts:
    devices = math.prod(max(1, whole_number(getattr(engine, key)) or 1) for key in _PARALLEL)
    speed = None if run is None else run.output_tokens_per_s
    counts = None if run is None else counted.get(run.run)
    return EngineFacts(
        **{name: getattr(engine, name) for name in _FACTS},
        kv_planned=engine.kv_tokens,
        run=run and run.run,
        run_at=run and run.began_at,
        hardware=run and run.hardware,
        devices=devices,
        kv_real=None if counts is None else counts.kv_tokens,
        speed=speed,
        noisy=run is not None and run.noisy > 0,
        prefill=prefill and prefill.prefill_tokens_per_s,
        prefill_run=prefill and prefill.run,
        price=price_per_million(price, devices, speed) if price is not None and speed else None,
        evaluation=evaluation and evaluation.evaluation,
        accuracy=evaluation and evaluation.worst_difference,
        gate=evaluation and evaluation.gate,
        checks=None if counts is None else counts.checks,
        mismatches=None if counts is None else counts.mismatches,
        events=events,
    )


def _sorted(rows: Sequence[EngineFacts], sort: RowSort) -> tuple[EngineFacts, ...]:
    """The same order each time; what has no value last, whichever way."""
    of = SORTED_BY[sort.removeprefix("-")]
    named = sorted(rows, key=lambda row: (row.name, row.id))
    known: Any = [row for row in named if of(row) is not None]
    known.sort(key=of, reverse=sort.startswith("-"))
    return (*known, *(row for row in named if of(row) is None))
