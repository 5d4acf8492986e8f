"""What was measured of an engine, for its page."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sqlalchemy.orm import Session

from ..benchmarks.queries import benchmark_detail, list_benchmarks
from ..benchmarks.records import BenchmarkFilter
from ..benchmarks.shown import levels_shown, prefill_shown
from ..errors import ConflictError
from ..evaluations.queries import evaluation_detail, list_evaluations
from ..evaluations.records import EvaluationFilter
from ..paging import PageOf
from .benchmark_charts import run_charts
from .benchmark_columns import COLUMNS
from .evaluation_charts import difference_chart

__all__ = ["measured_of"]

_FEW = PageOf(size=25)
_COLUMNS = ("state", "when", "workload", "hardware", "driver", "most", "alone", "prefill", "failed", "noisy", "tags")


def measured_of(session: Session, engine_id: str, tab: str) -> dict[str, Any]:
    """What the tabs on speed and accuracy show; nothing for the others."""
    if tab == "benchmarks":
        return _speed(session, engine_id)
    return _accuracy(session, engine_id) if tab == "accuracy" else {}


def _speed(session: Session, engine_id: str) -> dict[str, Any]:
    runs = list_benchmarks(session, BenchmarkFilter(engine=engine_id), _FEW)
    finished = next((run for run in runs.items if run.state == "finished" and run.points), None)
    detail = None
    with suppress(ConflictError):  # one that cannot be read has no picture; the list and the page stay
        detail = None if finished is None else benchmark_detail(session, finished.id)
    charts = () if detail is None else run_charts(levels_shown(detail.all_points), prefill_shown(detail.all_prefill))
    columns = tuple(column for column in COLUMNS if column.key in _COLUMNS)
    return {"runs": runs, "run_columns": columns, "run_pictures": charts[:2]}


def _accuracy(session: Session, engine_id: str) -> dict[str, Any]:
    evaluations = list_evaluations(session, EvaluationFilter(engine=engine_id), _FEW)
    finished = next((each for each in evaluations.items if each.state == "finished"), None)
    detail = None
    with suppress(ConflictError):
        detail = None if finished is None else evaluation_detail(session, finished.id)
    chart = None if detail is None else difference_chart(detail.all_scores, detail.gate_points)
    return {"evaluations": evaluations, "evaluation": detail, "chart_of_differences": chart}
