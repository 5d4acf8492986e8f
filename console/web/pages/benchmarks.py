"""The list of benchmark runs, with the columns that whoever looks has chosen."""

from __future__ import annotations

from typing import Annotated, get_args

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from roundhouse.serve.history.reader import RecordState

from ...benchmarks.queries import benchmark_choices, levels_by_run, list_benchmarks
from ...preferences.choices import forget_preference, preference, set_preference
from ..any_or_one import any_or_one
from ..benchmark_columns import COLUMNS, PREFERENCE, USUAL, columns_of, columns_text
from ..benchmark_list import BenchmarkListSort, BenchmarksWanted
from ..export_formats import parquet_hint
from ..list_url import ListUrl
from ..page import ListPage, Page
from ..rendering import is_ours, redirect
from ..state import state_of
from ..who import OwnAccount, Reading, Viewer

__all__ = ["router"]

router = APIRouter()

_USUAL: dict[str, object] = {"sort": "-began", "size": 50}
_LIST = "/benchmarks"


@router.get("/benchmarks")
def benchmarks(
    page: Page,
    session: Reading,
    actor: Viewer,
    part: ListPage,
    wanted: BenchmarksWanted,
    sort: BenchmarkListSort = "-began",
    columns: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Every run, with filters."""
    shown = columns_of(columns, preference(session, actor.user_id, PREFERENCE))
    runs = list_benchmarks(session, wanted, part, sort)
    has_ttft = any(column.key == "ttft" for column in shown)
    levels = levels_by_run(session, [run.id for run in runs.items]) if has_ttft else {}
    choices = benchmark_choices(session)
    named = {name: _said(value) for name, value in wanted.model_dump().items()}
    return page(
        "benchmarks/list.html",
        runs=runs,
        wanted=wanted,
        sort=sort,
        columns=shown,
        all_columns=COLUMNS,
        parquet_hint=parquet_hint(),
        first_token={
            id_: next((level for level in found if level.ttft_p50 is not None), None) for id_, found in levels.items()
        },
        choices=choices,
        workload_options=[("", "any"), *((each.key, each.words) for each in choices.workloads)],
        state_options=any_or_one(get_args(RecordState)),
        url=ListUrl(
            _LIST, _USUAL, **named, sort=sort, page=part.number, size=part.size, columns=columns_text(columns.split(","))
        ),
    )


@router.post("/benchmarks/columns")
def choose_columns(
    request: Request,
    actor: OwnAccount,
    column: Annotated[tuple[str, ...], Form()] = (),
    usual: Annotated[str, Form(max_length=10)] = "",
    back: Annotated[str, Form(max_length=2000)] = _LIST,
) -> Response:
    """Keep which columns somebody looks at; none, or the button for it, goes back to the usual ones."""
    keys = [each.key for each in COLUMNS if each.key in column]
    with state_of(request).database.writing() as session:
        if usual or not keys or tuple(keys) == USUAL:
            forget_preference(session, actor.user_id, PREFERENCE)
        else:
            set_preference(session, actor.user_id, PREFERENCE, keys)
    there = is_ours(back) and (back == _LIST or back.startswith(f"{_LIST}?"))
    return redirect(back if there else _LIST)


def _said(value: object) -> object:
    """As an address says it."""
    return str(value).lower() if isinstance(value, bool) else value
