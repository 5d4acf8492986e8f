"""Series of runs over time, and which of them have become worse than their baselines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..models import BenchmarkLevel, BenchmarkRun
from ..paging import PageOf
from .regressions import Regression, check_regressions
from .trend_records import Trend, TrendFilter, TrendRun, Trends

__all__ = ["MOST_RUNS", "MOST_SERIES", "list_trends"]

MOST_SERIES = 400
"""Series that are looked at, those with the newest runs."""
MOST_RUNS = 30
"""Runs of each series that are drawn, the newest."""
_OF_SERIES = (BenchmarkRun.series, BenchmarkRun.id, BenchmarkRun.is_baseline)
_LATEST = (BenchmarkRun.began_at.desc(), BenchmarkRun.id)
"""Which runs of a series come first, also of those that began at one moment."""
_ALONE = and_(BenchmarkLevel.benchmark_id == BenchmarkRun.id, BenchmarkLevel.concurrency == 1)
_OF_RUN = (
    BenchmarkRun.id,
    BenchmarkRun.began_at,
    BenchmarkRun.name,
    BenchmarkRun.tokens_per_s_most,
    BenchmarkRun.tokens_per_s_alone,
    BenchmarkRun.prefill_tokens_per_s,
    BenchmarkLevel.ttft_p50,
    BenchmarkLevel.inter_token_p50,
    BenchmarkRun.failed,
    BenchmarkRun.noisy,
    BenchmarkRun.is_baseline,
)
"""As :class:`TrendRun` has it."""
_SAME = (
    BenchmarkRun.model,
    BenchmarkRun.weights,
    BenchmarkRun.kv_cache,
    BenchmarkRun.guard,
    BenchmarkRun.target,
    BenchmarkRun.hardware,
    BenchmarkRun.workload,
    BenchmarkRun.driver,
)


def list_trends(session: Session, wanted: TrendFilter, page: PageOf) -> Trends:
    """A page of the series that fit: what has become worse first, then what was measured last.

    It takes five statements, and two more where requests failed.
    """
    since = wanted.since(utc_now())
    there = _series(session, wanted, since)
    pairs = [(baseline, newest) for _, newest, baseline in there.values() if baseline and baseline != newest]
    checked = check_regressions(session, pairs)
    is_worse = {series: _is_worse(checked.get(newest)) for series, (_, newest, _) in there.items()}
    order = sorted(
        (series for series in there if is_worse[series] or not wanted.regressed), key=lambda each: not is_worse[each]
    )
    shown = order[(page.number - 1) * page.size : page.number * page.size]
    trends = _trends(session, shown, there, checked, (page.number - 1) * page.size, since)
    return Trends(
        trends=trends,
        total=len(order),
        regressed=sum(is_worse.values()),
        pinned=sum(baseline is not None for *_, baseline in there.values()),
        page=page.number,
        size=page.size,
    )


def _is_worse(found: Regression | None) -> bool:
    return found is not None and found.state == "regressed"


def _fitting(wanted: TrendFilter) -> list[ColumnElement[bool]]:
    conditions = [BenchmarkRun.deleted_at.is_(None), BenchmarkRun.state == "finished"]
    equal = (
        (BenchmarkRun.model, wanted.model),
        (BenchmarkRun.hardware, wanted.hardware),
        (BenchmarkRun.workload_key, wanted.workload),
    )
    return conditions + [column == value for column, value in equal if value is not None]


def _series(session: Session, wanted: TrendFilter, since: datetime | None) -> dict[str, tuple[int, str, str | None]]:
    """Each series with how many runs it has, the newest, and the baseline; what was measured last comes first.

    The newest must be new enough; the baseline, which may be older, is looked for among all of them.
    """
    pinned_first = (BenchmarkRun.is_baseline.desc(), *_LATEST)
    ranked = (
        select(
            *_OF_SERIES,
            BenchmarkRun.began_at,
            func.row_number().over(partition_by=BenchmarkRun.series, order_by=_LATEST).label("rank"),
            func.row_number().over(partition_by=BenchmarkRun.series, order_by=pinned_first).label("pinned_rank"),
            func.count().over(partition_by=BenchmarkRun.series).label("runs"),
        )
        .where(*_fitting(wanted))
        .subquery()
    )
    told = select(ranked).where((ranked.c.rank == 1) | (ranked.c.pinned_rank == 1)).order_by(ranked.c.began_at.desc())
    newest: dict[str, tuple[int, str]] = {}
    baselines: dict[str, str] = {}
    for row in session.execute(told):
        if row.rank == 1 and (since is None or row.began_at >= since):
            newest[row.series] = (row.runs, row.id)
        if row.pinned_rank == 1 and row.is_baseline:
            baselines[row.series] = row.id
    return {series: (*newest[series], baselines.get(series)) for series in list(newest)[:MOST_SERIES]}


def _trends(
    session: Session,
    shown: Sequence[str],
    there: dict[str, tuple[int, str, str | None]],
    checked: dict[str, Regression],
    before: int,
    since: datetime | None,
) -> tuple[Trend, ...]:
    rank = func.row_number().over(partition_by=BenchmarkRun.series, order_by=_LATEST)
    rows = select(BenchmarkRun.series, *_OF_RUN, *_SAME, rank.label("rank")).outerjoin(BenchmarkLevel, _ALONE)
    ranked = rows.where(*_fitting(TrendFilter()), BenchmarkRun.series.in_(shown)).subquery()
    wanted = select(ranked).where((ranked.c.rank <= MOST_RUNS) | ranked.c.is_baseline).order_by(ranked.c.rank.desc())
    runs: dict[str, list[TrendRun]] = defaultdict(list)
    same: dict[str, Any] = {}
    for row in session.execute(wanted):
        runs[row.series].append(TrendRun(*row[1 : 1 + len(_OF_RUN)]))
        same[row.series] = row
    trends = []
    for number, series in enumerate(shown, before + 1):
        count, newest, baseline = there[series]
        by_id = {run.id: run for run in runs[series]}
        row = same[series]
        trends.append(
            Trend(
                series=series,
                number=number,
                model=row.model,
                recipe=_recipe(row),
                hardware=row.hardware,
                workload=row.workload,
                driver=row.driver,
                count=count,
                runs=[run for run in runs[series] if since is None or run.began_at >= since],
                newest=by_id[newest],
                baseline=by_id.get(baseline) if baseline else None,
                regression=checked.get(newest),
            )
        )
    return tuple(trends)


def _recipe(row: Any) -> str:
    if row.weights is None:
        return f"as {row.name} serves it"
    guard = "" if row.guard == "tags" else f", guard {row.guard}"
    return f"{row.weights}, KV {row.kv_cache}{guard}"
