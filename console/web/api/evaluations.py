"""Evaluations of accuracy, for programs."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ...access.sealing import Sealer
from ...benchmarks.files import one_file
from ...evaluations.actions import ask_evaluation
from ...evaluations.deleting import delete_evaluation
from ...evaluations.queries import evaluation_detail, list_evaluations, require_evaluation
from ...evaluations.records import EvaluationDetail, EvaluationRow
from ...evaluations.requests import EvaluationRequest
from ...jobs.queries import job_detail
from ...jobs.records import JobDetail
from ...paging import Paged
from ..benchmark_list import EvaluationListSort, EvaluationsWanted
from ..page import ListPage
from ..state import state_of
from ..who import Builder, Reading, needs
from .asked import EvaluationId, FileName, IdempotencyKey
from .raw_file import GZIP, raw_file

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/evaluations", tags=["evaluations"])


@router.get("", dependencies=[needs("read")])
def evaluations(
    session: Reading, part: ListPage, wanted: EvaluationsWanted, sort: EvaluationListSort = "-began"
) -> Paged[EvaluationRow]:
    """Every evaluation, with filters."""
    return list_evaluations(session, wanted, part, sort)


@router.post("", status_code=202)
def ask(
    request: Request, response: Response, actor: Builder, wanted: EvaluationRequest, idempotency_key: IdempotencyKey = None
) -> JobDetail:
    """Have accuracy measured: a job, whose result names the evaluation. The same key again gets the same job."""
    state = state_of(request)
    sealer = Sealer.of(state.settings.home)
    with state.database.writing() as session:
        job_id = ask_evaluation(session, actor, wanted, sealer, key=idempotency_key).id
    response.headers["location"] = f"/api/v1/jobs/{job_id}"
    with state.database.reading() as session:
        return job_detail(session, job_id)


@router.get("/{evaluation_id}", dependencies=[needs("read")])
def evaluation(session: Reading, evaluation_id: EvaluationId) -> EvaluationDetail:
    """One evaluation, with its scores."""
    return evaluation_detail(session, evaluation_id)


@router.delete("/{evaluation_id}", status_code=204)
def delete(request: Request, actor: Builder, evaluation_id: EvaluationId) -> None:
    """Delete an evaluation with its items, here and in its home. Refused (409) while it is being measured."""
    with state_of(request).database.writing() as session:
        delete_evaluation(session, actor, evaluation_id)


@router.get(
    "/{evaluation_id}/files/{file_name:path}", dependencies=[needs("read")], response_class=Response, responses={200: GZIP}
)
def file(session: Reading, evaluation_id: EvaluationId, file_name: FileName) -> Response:
    """Its items, or a raw file of it, compressed with gzip."""
    require_evaluation(session, evaluation_id)
    return raw_file(file_name, one_file(session, evaluation_id, file_name))
