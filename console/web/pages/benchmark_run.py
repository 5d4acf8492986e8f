"""One benchmark run: what was measured, on what, and how to measure it again; live while it runs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy.orm import Session

from ...access.secrets import new_secret
from ...benchmarks.form import may_be_asked_again
from ...benchmarks.marking import MOST_NOTE
from ...benchmarks.queries import (
    benchmark_detail,
    benchmark_row,
    list_benchmarks,
    measured_points,
    newest_samples,
    samples_since,
)
from ...benchmarks.records import BenchmarkDetail, BenchmarkFilter, BenchmarkRow, NumberedSample
from ...benchmarks.reproducing import reproduction
from ...benchmarks.shown import levels_shown, prefill_shown
from ...paging import PageOf
from ..benchmark_charts import run_charts
from ..events import Event, Look, follow
from ..export_formats import parquet_hint
from ..page import Page
from ..state import state_of
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/benchmarks/{benchmark_id}", dependencies=[needs("read")])
_SERIES = ("output_tokens_per_s", "running", "waiting", "kv_pages_used", "completed")
_SHOWN = 900
"""Samples of the chart when it begins: a quarter of an hour."""
_TABLE_ROWS = 15


@router.get("")
def one(page: Page, session: Reading, benchmark_id: str) -> Response:
    """One run."""
    found = benchmark_detail(session, benchmark_id)
    recent = _recent(session, found)
    return page(
        "benchmarks/run.html",
        run=found,
        going=found,
        measured=found.points + len(found.all_prefill),
        **_results(found),
        in_parts=False,
        baseline=_baseline(session, found),
        reproduction=reproduction(found.header),
        again=may_be_asked_again(found.header),
        parquet_hint=parquet_hint(),
        samples=recent[:: -max(1, len(recent) // _TABLE_ROWS)],
        latest=recent[-1] if recent else None,
        most_note=MOST_NOTE,
        idempotency_key=new_secret(),
    )


@router.get("/now")
def now(page: Page, session: Reading, benchmark_id: str, measured: int = -1) -> Response:
    """How far it is, for a page that follows it, with what it came to when that is new. A run that ended is loaded anew.

    Only when a point, of load or of prefill, was measured that the page does not have is the whole run read.
    """
    going = benchmark_row(session, benchmark_id)
    if not going.is_live:
        return Response(headers={"hx-refresh": "true"})
    latest = next(iter(newest_samples(session, benchmark_id, 1)), None)
    new: dict[str, Any] = {}
    there = measured_points(session, going)
    if there != measured:
        found = benchmark_detail(session, benchmark_id)
        new = {"run": found, **_results(found)}
    return page.fragment("benchmarks/now.html", going=going, measured=there, latest=latest, in_parts=True, **new)


@router.get("/samples")
def samples(session: Reading, benchmark_id: str) -> dict[str, Any]:
    """What it counted so far, laid out for lines."""
    going = benchmark_row(session, benchmark_id)
    shown = _recent(session, going)
    begun = going.began_at.timestamp()
    series = {name: [getattr(each, name) for each in shown] for name in _SERIES}
    return {"at": [begun + each.at_s for each in shown], "series": series}


@router.get("/live")
def live(request: Request, session: Reading, benchmark_id: str) -> StreamingResponse:
    """Each sample as it comes; the last one at once."""
    begun = benchmark_row(session, benchmark_id).began_at.timestamp()
    known = next((each.number for each in newest_samples(session, benchmark_id, 1)), -1)
    database = state_of(request).database

    def look(after: int) -> Look:
        with database.reading() as session:
            answer = samples_since(session, benchmark_id, (after or known) - 1)
        return Look([_event(begun, each) for each in answer.samples], ended=not answer.samples and answer.state != "running")

    return follow(request, look)


def _baseline(session: Session, found: BenchmarkDetail) -> BenchmarkRow | None:
    """The newest run of its series that is pinned; None where that is the run itself, or there is none."""
    wanted = BenchmarkFilter(series=found.series, baseline=True)
    pinned = list_benchmarks(session, wanted, PageOf(size=1)).items
    return pinned[0] if pinned and pinned[0].id != found.id else None


def _results(found: BenchmarkDetail) -> dict[str, Any]:
    levels, prefill = levels_shown(found.all_points), prefill_shown(found.all_prefill)
    return {"levels": levels, "prefill": prefill, "pictures": run_charts(levels, prefill)}


def _recent(session: Session, going: BenchmarkRow) -> tuple[NumberedSample, ...]:
    return newest_samples(session, going.id, _SHOWN) if going.is_live else ()


def _event(begun: float, sample: NumberedSample) -> Event:
    values = {name: getattr(sample, name) for name in _SERIES}
    return Event({"at": begun + sample.at_s, "values": values}, id=sample.number + 1)
