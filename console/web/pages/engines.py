"""The list of engines, and one engine with its parts in tabs."""

from __future__ import annotations

from typing import Literal, get_args

from fastapi import APIRouter
from fastapi.responses import Response

from roundhouse.build.recipe import Target, Weights

from ...access.secrets import new_secret
from ...engines.manifest_view import manifest_text, view_of
from ...engines.modules import fold_modules, kinds_of_modules
from ...engines.queries import engine_detail, hosts_with_engines, list_engines
from ...engines.scale_chart import HEIGHT, scale_chart
from ..any_or_one import any_or_one
from ..engine_list import EngineListSort, EnginesWanted
from ..engine_measured import measured_of
from ..list_url import ListUrl
from ..page import ListPage, Page
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter()

Tab = Literal[
    "overview", "modules", "kv-scales", "quality", "files", "replicas", "lineage", "deployments", "benchmarks", "accuracy"
]
_USUAL: dict[str, object] = {"state": "here", "sort": "-made", "size": 50}


@router.get("/engines", dependencies=[needs("read")])
def engines(page: Page, session: Reading, part: ListPage, wanted: EnginesWanted, sort: EngineListSort = "-made") -> Response:
    """Every engine, with filters."""
    url = ListUrl("/engines", _USUAL, **wanted.model_dump(), sort=sort, page=part.number, size=part.size)
    return page(
        "engines/list.html",
        engines=list_engines(session, wanted, part, sort),
        wanted=wanted,
        sort=sort,
        url=url,
        target_options=any_or_one(get_args(Target)),
        weight_options=any_or_one(get_args(Weights)),
        host_options=any_or_one(hosts_with_engines(session)),
    )


@router.get("/engines/{engine_id}", dependencies=[needs("read")])
def engine(page: Page, session: Reading, engine_id: str, tab: Tab = "overview") -> Response:
    """One engine."""
    found = engine_detail(session, engine_id)
    view = view_of(found.manifest)
    modules: dict[str, str] = {} if view is None else view.manifest.modules
    return page(
        "engines/engine.html",
        engine=found,
        view=view,
        tab=tab,
        tabs=get_args(Tab),
        modules=fold_modules(modules) if tab == "modules" else (),
        module_kinds=kinds_of_modules(modules),
        chart=None if view is None else scale_chart(view.manifest.kv_scales),
        chart_height=HEIGHT,
        idempotency_key=new_secret(),
        **measured_of(session, found.id, tab),
    )


@router.get("/engines/{engine_id}/replicas", dependencies=[needs("read")])
def replicas(page: Page, session: Reading, engine_id: str) -> Response:
    """Where an engine lies, for a page that follows it."""
    return page.fragment("engines/replicas.html", engine=engine_detail(session, engine_id), idempotency_key=new_secret())


@router.get("/engines/{engine_id}/engine.json", dependencies=[needs("read")])
def manifest(session: Reading, engine_id: str) -> Response:
    """The manifest as a file."""
    found = engine_detail(session, engine_id)
    name = f"{found.name}-{found.id}-engine.json"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(manifest_text(found.manifest), media_type="application/json", headers=headers)
