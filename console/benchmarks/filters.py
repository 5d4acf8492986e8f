"""Which benchmark runs a filter lets through, and in which order they are listed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select

from ..models import BenchmarkRun, BenchmarkTag
from .records import BenchmarkFilter, BenchmarkSort
from .silence import is_in_state

__all__ = ["fitting", "in_order"]

_SORTED_BY: dict[str, Any] = {
    "began": BenchmarkRun.began_at,
    "most": BenchmarkRun.tokens_per_s_most,
    "alone": BenchmarkRun.tokens_per_s_alone,
    "prefill": BenchmarkRun.prefill_tokens_per_s,
    "name": BenchmarkRun.name,
    "model": BenchmarkRun.model,
}


def fitting(wanted: BenchmarkFilter, now: datetime) -> list[ColumnElement[bool]]:
    """The conditions that a run meets which is wanted and was not deleted."""
    run = BenchmarkRun
    conditions: list[ColumnElement[bool]] = [run.deleted_at.is_(None)]
    equal = (
        (run.model, wanted.model),
        (run.engine_id, wanted.engine),
        (run.weights, wanted.weights),
        (run.kv_cache, wanted.kv_cache),
        (run.hardware, wanted.hardware),
        (run.driver, wanted.driver),
        (run.workload_key, wanted.workload),
        (run.series, wanted.series),
        (run.is_baseline, wanted.baseline),
        (run.is_imported, wanted.imported),
        (run.job_id, wanted.job),
    )
    conditions += [column == value for column, value in equal if value is not None]
    conditions += [run.sought.contains(word, autoescape=True) for word in (wanted.text or "").lower().split()]
    if wanted.state is not None:
        conditions.append(is_in_state(run, wanted.state, now))
    if wanted.tag is not None:
        conditions.append(
            select(BenchmarkTag.tag).where(BenchmarkTag.benchmark_id == run.id, BenchmarkTag.tag == wanted.tag).exists()
        )
    return conditions


def in_order(sort: BenchmarkSort) -> tuple[Any, ...]:
    """For an ORDER BY: the same order each time, and what has no number last."""
    key = _SORTED_BY[sort.removeprefix("-")]
    return (key.desc() if sort.startswith("-") else key).nulls_last(), BenchmarkRun.began_at.desc(), BenchmarkRun.id
