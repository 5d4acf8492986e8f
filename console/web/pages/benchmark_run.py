"""One benchmark run: what was measured, on what, and how to measure it again; live while it runs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy.orm import Session

from ...access.secrets import new_secret
from ...benchmarks.form import may_be_asked_again
from ...benchmarks.marking import MOST_NOTE
from ...benchmarks.queries import benchmark_detail, list_benchmarks, samples_since
from ...benchmarks.records import BenchmarkDetail, BenchmarkFilter, BenchmarkRow, NumberedSample
from ...benchmarks.reproducing import reproduction
from ...benchmarks.shown import levels_shown, prefill_shown
from ...paging import PageOf
from ..benchmark_charts import run_charts
from ..events import Event, Look, follow
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
        **_results(found),
        in_parts=False,
        baseline=_baseline(session, found),
        reproduction=reproduction(found.header),
        again=may_be_asked_again(found.header),
        samples=recent[:: -max(1, len(recent) // _TABLE_ROWS)],
        latest=recent[-1] if recent else None,
        most_note=MOST_NOTE,
        idempotency_key=new_secret(),
    )


@router.get("/now")
def now(page: Page, session: Reading, benchmark_id: str, points: int = -1) -> Response:
    """How far it is, for a page that follows it, with what it came to when that is new. A run that ended is loaded anew."""
    found = benchmark_detail(session, benchmark_id)
    if not found.is_live:
        return Response(headers={"hx-refresh": "true"})
    recent = _recent(session, found)
    results = _results(found) if found.points != points else {}
    return page.fragment("benchmarks/now.html", run=found, latest=recent[-1] if recent else None, in_parts=True, **results)


@router.get("/samples")
def samples(session: Reading, benchmark_id: str) -> dict[str, Any]:
    """What it counted so far, laid out for lines."""
    found = benchmark_detail(session, benchmark_id)
    shown = _recent(session, found)
    begun = found.began_at.timestamp()
    series = {name: [getattr(each, name) for each in shown] for name in _SERIES}
    return {"at": [begun + each.at_s for each in shown], "series": series}


@router.get("/live")
def live(request: Request, session: Reading, benchmark_id: str) -> StreamingResponse:
    """Each sample as it comes; the last one at once."""
    found = benchmark_detail(session, benchmark_id)
    begun, known = found.began_at.timestamp(), found.samples
    database = state_of(request).database

    def look(after: int) -> Look:
        with database.reading() as session:
            answer = samples_since(session, benchmark_id, (after or known - 1) - 1)
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


def _recent(session: Session, found: BenchmarkDetail) -> tuple[NumberedSample, ...]:
    if not found.is_live:
        return ()
    return samples_since(session, found.id, found.samples - _SHOWN - 1, most=_SHOWN).samples


def _event(begun: float, sample: NumberedSample) -> Event:
    values = {name: getattr(sample, name) for name in _SERIES}
    return Event({"at": begun + sample.at_s, "values": values}, id=sample.number + 1)
