"""Benchmark runs as files."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from roundhouse.serve.benchmark.exporting import Format, export

from ...benchmarks.records import MOST_CHOSEN
from ...benchmarks.whole_runs import benchmark_records
from ..rendering import redirect
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/benchmarks")
_MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


@router.get("/export", dependencies=[needs("read")])
def exported(
    session: Reading,
    run: Annotated[tuple[str, ...], Query(max_length=MOST_CHOSEN)] = (),
    form: Annotated[Format, Query(alias="format")] = "json",
) -> Response:
    """Runs as one file: JSON with everything, CSV and Parquet with a row for each point."""
    wanted = tuple(dict.fromkeys(run))
    if not wanted:
        return redirect("/benchmarks", "No run was chosen: the list has a box before each.", "problem")
    content = export(benchmark_records(session, wanted), form)
    name = wanted[0] if len(wanted) == 1 else f"{len(wanted)}-runs"
    headers = {"content-disposition": f'attachment; filename="benchmark-{name}.{form}"'}
    return Response(content, media_type=_MEDIA_TYPES[form], headers=headers)
