"""Engines side by side, for people and as CSV."""

from __future__ import annotations

import csv
import io
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response
from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.exporting import spreadsheet_text

from ...benchmarks.queries import benchmark_choices
from ...benchmarks.row_records import EngineFacts, EnginesAsked, EngineWanted, RowSort
from ...benchmarks.rows import engine_rows
from ...settings_table import TableSettings, read_settings
from ..list_url import ListUrl
from ..page import Page
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(dependencies=[needs("read")])

_USUAL: dict[str, object] = {"at": 8, "sort": "-speed"}
_CSV = {
    "engine": "id", "name": "name", "model": "model", "target": "target", "role": "role", "weights": "weights",
    "kv_cache": "kv_cache", "checkpoint_bytes": "checkpoint_bytes", "kv_tokens_planned": "kv_planned",
    "kv_tokens_real": "kv_real", "hardware": "hardware", "devices": "devices", "output_tokens_per_s": "speed",
    "disturbed": "noisy", "prefill_tokens_per_s": "prefill", "price_per_million_tokens": "price",
    "accuracy_difference_points": "accuracy", "accuracy_gate": "gate", "page_checks": "checks",
    "page_mismatches": "mismatches", "integrity_events": "events", "benchmark": "run", "prefill_benchmark": "prefill_run",
    "evaluation": "evaluation",
}  # fmt: skip
"""Columns, and where their values come from."""

_Text = Annotated[str, Query(max_length=200)]


def _wanted(
    at: Annotated[int, Query(ge=1, le=100_000)] = 8,
    price: Annotated[str, Query(max_length=20)] = "",
    model: _Text = "",
) -> EngineWanted:
    return EngineWanted(at=at, price=_price(price), model=model or None)


def _price(text: str) -> float | None:
    """What was typed; what is no price counts as none, and the field shows it."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value <= 100_000 else None  # as the settings allow


Wanted = Annotated[EngineWanted, Depends(_wanted)]


@router.get("/benchmarks/rows")
def rows(page: Page, session: Reading, wanted: Wanted, sort: RowSort = "-speed") -> Response:
    """Every engine that was measured or evaluated."""
    found, settings = _asked(session, wanted, sort)
    url = ListUrl("/benchmarks/rows", _USUAL, at=wanted.at, price=wanted.price, model=wanted.model, sort=sort)
    return page(
        "benchmarks/rows.html",
        found=found,
        wanted=wanted,
        sort=sort,
        url=url,
        csv_url=url().replace("/benchmarks/rows", "/benchmarks/rows.csv", 1),
        currency=settings.currency,
        choices=benchmark_choices(session),
    )


@router.get("/benchmarks/rows.csv")
def rows_csv(session: Reading, wanted: Wanted, sort: RowSort = "-speed") -> Response:
    """The same for a spreadsheet."""
    found, settings = _asked(session, wanted, sort)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([*_CSV, "concurrency", "price_per_hour", "currency"])
    for row in found.rows:
        writer.writerow(
            [*(_cell(row, name) for name in _CSV.values()), wanted.at, _plain(found.price), _plain(settings.currency)]
        )
    headers = {"content-disposition": f'attachment; filename="roundhouse-engines-at-{wanted.at}.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _asked(session: Session, wanted: EngineWanted, sort: RowSort) -> tuple[EnginesAsked, TableSettings]:
    settings = read_settings(session)
    return engine_rows(session, wanted, sort, settings.gpu_hour_price), settings


def _cell(row: EngineFacts, name: str) -> object:
    return _plain(getattr(row, name))


def _plain(value: object) -> object:
    """A value for CSV."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return spreadsheet_text(value) if isinstance(value, str) else "" if value is None else value
