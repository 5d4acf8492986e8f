"""Any number of benchmark runs side by side. All of it is in the address."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from ...benchmarks.compare import compare_runs
from ...benchmarks.compare_asked import CompareAsked, runs_called
from ...benchmarks.compare_quantities import compared_by
from ...benchmarks.finding import find_called
from ..compare_charts import MOST_DRAWN, compare_charts
from ..page import Page
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(dependencies=[needs("read")])


@router.get("/benchmarks/compare")
def compare(request: Request, page: Page, session: Reading) -> Response:
    """The comparison. What forms say in a roundabout way is brought to the address that one would copy: with whole ids."""
    pairs = request.query_params.multi_items()
    called = find_called(session, runs_called(pairs))
    asked = CompareAsked.read(pairs, called.id_of)
    if pairs != asked.pairs:
        return RedirectResponse(asked.url(), status_code=303)
    comparison = compare_runs(session, asked)
    return page(
        "benchmarks/compare.html",
        comparison=comparison,
        missing=[each for each in comparison.missing if each not in called.ambiguous],
        ambiguous=called.ambiguous,
        charts=compare_charts(comparison),
        compared_by=compared_by(),
        most_drawn=MOST_DRAWN,
    )
