"""Workers, for programs."""

from __future__ import annotations

from fastapi import APIRouter

from ...paging import Paged
from ...workers.queries import find_worker, list_workers
from ...workers.records import WorkerDetail, WorkerRow
from ..access_lists import WorkersWanted
from ..page import ListPage
from ..who import Reading, needs
from .asked import WorkerId

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/workers", tags=["workers"], dependencies=[needs("read")])


@router.get("")
def workers(session: Reading, part: ListPage, wanted: WorkersWanted) -> Paged[WorkerRow]:
    """Every worker, those that are there first."""
    return list_workers(session, wanted, part)


@router.get("/{worker_id}")
def worker(session: Reading, worker_id: WorkerId) -> WorkerDetail:
    """One worker, and the jobs it had."""
    return find_worker(session, worker_id)
