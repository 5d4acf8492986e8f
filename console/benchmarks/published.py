"""What was measured here, laid out as published tables are: pairs of runs that differ in one thing only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from ..models import BenchmarkLevel, BenchmarkRun, EngineRecord, EvaluationRun
from .json_values import whole_number
from .published_tables import Line, PublishedTable, Technique, published_tables

__all__ = ["Beside", "FoundAccuracy", "MeasuredPair", "beside_published"]

_MOST_RUNS = 500
"""That pairs are looked for in: the newest of each kind."""
_MOST_PAIRS = 3
"""Of each technique."""
_MOST_EVALUATIONS = 6
_SAME = ("model", "target", "role", "weights", "kv_cache", "guard", "hardware", "workload_key", "driver")
"""What makes a kind of run. A pair differs in one of these."""
_CHANGES: dict[Technique, Callable[[str, str], bool]] = {
    "kv_cache": lambda before, after: (before, after) == ("bf16", "fp8"),
    "weights": lambda before, after: before in ("bf16", "fp8") and after == "int4_awq",
    "guard": lambda before, after: before == "off" and after.startswith("tags"),
}


@dataclass(frozen=True)
class MeasuredPair:
    """Two runs of the same but for one thing."""

    model: str
    before: str
    after: str
    """What that is, in words."""
    rest: str
    """What both have, in words."""
    hardware: str
    workload: str
    runs: tuple[str, str]
    """Ids."""
    at: datetime
    """When the later one began."""
    lines: tuple[Line, ...]
    is_same_model: bool
    """Whether it is the one that was published."""


@dataclass(frozen=True)
class FoundAccuracy:
    """An evaluation here."""

    id: str
    name: str
    base_name: str | None
    worst_difference: float | None
    gate: str


@dataclass(frozen=True)
class Beside:
    """A published table, and what was measured here of the same technique."""

    published: PublishedTable
    pairs: tuple[MeasuredPair, ...] = ()
    evaluations: tuple[FoundAccuracy, ...] = ()


@dataclass(frozen=True)
class _Found:
    """What is looked up of the runs that are shown."""

    levels: Mapping[str, Mapping[int, float]]
    """Output tokens a second, by run and concurrency."""
    checkpoints: Mapping[str, int]
    """Bytes, by engine."""
    pools: Mapping[str, float]
    """Tokens that the cache held, by run."""


def beside_published(session: Session) -> tuple[Beside, ...]:
    """Every published table with what was measured here, in five statements."""
    runs = session.execute(_newest_of_each_kind()).all()
    wanted = {table.technique: _pairs(table, runs) for table in published_tables()}
    ids = sorted({row.id for pairs in wanted.values() for pair in pairs for row in pair})
    engines = [row.engine_id for row in runs if row.id in ids]
    found = _Found(_levels(session, ids), _checkpoints(session, engines), _pools(session, ids))
    return tuple(
        Beside(
            table,
            pairs=tuple(_pair(table, *pair, found) for pair in wanted[table.technique]),
            evaluations=_evaluations(session) if table.technique == "accuracy" else (),
        )
        for table in published_tables()
    )


def _newest_of_each_kind() -> Any:
    kind = [getattr(BenchmarkRun, name) for name in _SAME]
    rank = func.row_number().over(partition_by=kind, order_by=(BenchmarkRun.began_at.desc(), BenchmarkRun.id)).label("rank")
    more = (BenchmarkRun.id, BenchmarkRun.engine_id, BenchmarkRun.workload, BenchmarkRun.began_at)
    done = (
        BenchmarkRun.deleted_at.is_(None),
        BenchmarkRun.state == "finished",
        BenchmarkRun.engine_id.is_not(None),
        BenchmarkRun.is_imported.is_(False),
    )
    ranked = select(*kind, *more, BenchmarkRun.prefill_tokens_per_s, rank).where(*done).subquery()
    return select(ranked).where(ranked.c.rank == 1).order_by(ranked.c.began_at.desc(), ranked.c.id).limit(_MOST_RUNS)


def _pairs(table: PublishedTable, runs: Sequence[Row[Any]]) -> list[tuple[Row[Any], Row[Any]]]:
    """Runs that differ in the technique alone: of the published model first, then what was measured last."""
    fits = _CHANGES.get(table.technique)
    if fits is None:
        return []
    alike: dict[tuple[Any, ...], list[Row[Any]]] = defaultdict(list)
    for row in runs:
        alike[tuple(getattr(row, name) for name in _SAME if name != table.technique)].append(row)
    found = [
        (before, after)
        for group in alike.values()
        for before in group
        for after in group
        if fits(getattr(before, table.technique) or "", getattr(after, table.technique) or "")
    ]
    found.sort(key=lambda pair: (_is_same(table, pair[0].model), max(row.began_at for row in pair)), reverse=True)
    return found[:_MOST_PAIRS]


def _pair(table: PublishedTable, before: Row[Any], after: Row[Any], found: _Found) -> MeasuredPair:
    names = {"weights": "weights", "kv_cache": "KV", "guard": "guard"}
    rest = [f"{name} {getattr(before, key)}" for key, name in names.items() if key != table.technique]
    return MeasuredPair(
        model=before.model,
        before=str(getattr(before, table.technique)),
        after=str(getattr(after, table.technique)),
        rest=", ".join(rest),
        hardware=before.hardware,
        workload=before.workload,
        runs=(before.id, after.id),
        at=max(before.began_at, after.began_at),
        lines=tuple(_lines(table.technique, before, after, found)),
        is_same_model=_is_same(table, before.model),
    )


def _lines(technique: Technique, before: Row[Any], after: Row[Any], found: _Found) -> Iterator[Line]:
    if technique == "weights":
        yield Line(
            "Checkpoint", _mib(found.checkpoints.get(before.engine_id)), _mib(found.checkpoints.get(after.engine_id)), "MiB"
        )
    if technique != "guard":
        yield Line("KV tokens", found.pools.get(before.id), found.pools.get(after.id))
    first, second = (found.levels.get(row.id, {}) for row in (before, after))
    for concurrency in sorted(first.keys() | second.keys()):
        yield Line(f"Output at {concurrency}", first.get(concurrency), second.get(concurrency), "tokens/s")
    if before.prefill_tokens_per_s is not None or after.prefill_tokens_per_s is not None:
        yield Line("Prefill", before.prefill_tokens_per_s, after.prefill_tokens_per_s, "tokens/s")


def _levels(session: Session, ids: Sequence[str]) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = defaultdict(dict)
    columns = (BenchmarkLevel.benchmark_id, BenchmarkLevel.concurrency, BenchmarkLevel.output_tokens_per_s)
    for id_, concurrency, speed in session.execute(select(*columns).where(BenchmarkLevel.benchmark_id.in_(ids))):
        found[id_][concurrency] = speed
    return found


def _pools(session: Session, ids: Sequence[str]) -> dict[str, float]:
    tokens = BenchmarkRun.header[("subject", "settings", "kv", "tokens")]
    wanted = select(BenchmarkRun.id, tokens).where(BenchmarkRun.id.in_(ids))
    told = {id_: whole_number(value) for id_, value in session.execute(wanted)}
    return {id_: float(value) for id_, value in told.items() if value is not None}


def _checkpoints(session: Session, engines: Sequence[str]) -> dict[str, int]:
    wanted = select(EngineRecord.id, EngineRecord.checkpoint_bytes).where(EngineRecord.id.in_(engines))
    return {row[0]: row[1] for row in session.execute(wanted)}


def _evaluations(session: Session) -> tuple[FoundAccuracy, ...]:
    columns = [getattr(EvaluationRun, name) for name in FoundAccuracy.__dataclass_fields__]
    done = (EvaluationRun.deleted_at.is_(None), EvaluationRun.state == "finished", EvaluationRun.worst_difference.is_not(None))
    newest = select(*columns).where(*done).order_by(EvaluationRun.began_at.desc(), EvaluationRun.id).limit(_MOST_EVALUATIONS)
    return tuple(FoundAccuracy(*row) for row in session.execute(newest))


def _mib(size: int | None) -> float | None:
    return None if size is None else size / 2**20


def _is_same(table: PublishedTable, model: str) -> bool:
    """Whether a model here is called like the published one, whoever made the copy: ``moonshotai/Kimi-K2.6-Instruct``."""
    return table.model.lower() in model.lower()
