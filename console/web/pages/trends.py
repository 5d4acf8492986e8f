"""Measurements over time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from ...benchmarks.queries import benchmark_choices
from ...benchmarks.regressions import ALPHA, TOLERANCE
from ...benchmarks.trend_records import TrendFilter, TrendRange
from ...benchmarks.trends import MOST_RUNS, list_trends
from ...paging import PageOf
from ..list_url import ListUrl
from ..page import Page
from ..trend_charts import trend_charts
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(dependencies=[needs("read")])

_SHOWN = 5
"""Series on a page: more lines cannot be told apart."""
_Text = Annotated[str, Query(max_length=200)]


_Range = Annotated[TrendRange, Query(alias="range")]
_RANGES: tuple[tuple[TrendRange, str], ...] = (("30d", "30 days"), ("90d", "90 days"), ("1y", "a year"), ("all", "all"))


def _wanted(
    model: _Text = "", hardware: _Text = "", workload: _Text = "", within: _Range = "all", regressed: bool = False
) -> TrendFilter:
    return TrendFilter(
        model=model or None, hardware=hardware or None, workload=workload or None, range=within, regressed=regressed
    )


@router.get("/benchmarks/trends")
def trends(
    page: Page,
    session: Reading,
    wanted: Annotated[TrendFilter, Depends(_wanted)],
    number: Annotated[int, Query(alias="page", ge=1, le=100_000)] = 1,
) -> Response:
    """Series that fit, with charts over time."""
    found = list_trends(session, wanted, PageOf(number=number, size=_SHOWN))
    asked = wanted.model_dump() | {"regressed": 1 if wanted.regressed else None}
    return page(
        "benchmarks/trends.html",
        found=found,
        charts=trend_charts(found.trends),
        wanted=wanted,
        choices=benchmark_choices(session),
        url=ListUrl("/benchmarks/trends", {"range": "all"}, **asked, page=number),
        ranges=_RANGES,
        most_runs=MOST_RUNS,
        alpha=ALPHA,
        tolerance=TOLERANCE,
    )
