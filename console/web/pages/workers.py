"""The workers, and what each can do and does."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from ...workers.queries import find_worker, list_workers, worker_hosts
from ..access_lists import WorkersWanted
from ..list_url import ListUrl
from ..page import ListPage, Page
from ..who import Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/workers", dependencies=[needs("read")])


@router.get("")
def workers(page: Page, session: Reading, part: ListPage, wanted: WorkersWanted) -> Response:
    """Every worker, those that are there first."""
    url = ListUrl("/workers", {"size": 50}, **wanted.model_dump(), page=part.number, size=part.size)
    listed = list_workers(session, wanted, part)
    return page("workers/list.html", workers=listed, wanted=wanted, url=url, hosts=worker_hosts(session))


@router.get("/list")
def workers_now(page: Page, session: Reading, part: ListPage, wanted: WorkersWanted) -> Response:
    """The list alone, for a page that follows it."""
    url = ListUrl("/workers", {"size": 50}, **wanted.model_dump(), page=part.number, size=part.size)
    return page.fragment("workers/table.html", workers=list_workers(session, wanted, part), wanted=wanted, url=url)


@router.get("/{worker_id}")
def worker(page: Page, session: Reading, worker_id: str) -> Response:
    """One worker, and the jobs it had."""
    return page("workers/worker.html", worker=find_worker(session, worker_id))
