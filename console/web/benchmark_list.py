"""Which benchmark runs and evaluations a list shows, from its URL; pages and API say it alike."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from roundhouse.serve.benchmark.records import Driver
from roundhouse.serve.history.reader import RecordState

from ..benchmarks.records import BenchmarkFilter, BenchmarkSort
from ..evaluations.records import EvaluationFilter, EvaluationSort, GateState

__all__ = ["BenchmarkListSort", "BenchmarksWanted", "EvaluationListSort", "EvaluationsWanted"]

_Text = Annotated[str, Query(max_length=200)]
_Job = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The job that measured it.")]


def _benchmarks(
    text: _Text = "",
    state: RecordState | None = None,
    model: _Text = "",
    engine: _Text = "",
    weights: _Text = "",
    kv_cache: _Text = "",
    hardware: _Text = "",
    driver: Driver | None = None,
    tag: _Text = "",
    workload: _Text = "",
    series: _Text = "",
    baseline: bool | None = None,
    imported: bool | None = None,
    job: _Job = None,
) -> BenchmarkFilter:
    return BenchmarkFilter(
        text=text.strip() or None,
        state=state,
        model=model or None,
        engine=engine or None,
        weights=weights or None,
        kv_cache=kv_cache or None,
        hardware=hardware or None,
        driver=driver,
        tag=tag.strip().lower() or None,
        workload=workload or None,
        series=series or None,
        baseline=baseline,
        imported=imported,
        job=job,
    )


def _evaluations(
    text: _Text = "",
    state: RecordState | None = None,
    gate: GateState | None = None,
    engine: _Text = "",
    job: _Job = None,
) -> EvaluationFilter:
    return EvaluationFilter(text=text.strip() or None, state=state, gate=gate, engine=engine or None, job=job)


BenchmarksWanted = Annotated[BenchmarkFilter, Depends(_benchmarks)]
BenchmarkListSort = Annotated[BenchmarkSort, Query()]
EvaluationsWanted = Annotated[EvaluationFilter, Depends(_evaluations)]
EvaluationListSort = Annotated[EvaluationSort, Query()]
