"""Evaluations: the list, and one with its scores and questions."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy.orm import Session

from roundhouse.serve.history.reader import RecordState

from ...access.secrets import new_secret
from ...errors import NotFoundError
from ...evaluations.deleting import delete_evaluation
from ...evaluations.items import ItemShow, items_of
from ...evaluations.queries import evaluation_detail, evaluation_progress, list_evaluations
from ...evaluations.records import GateState
from ..any_or_one import any_or_one
from ..benchmark_list import EvaluationListSort, EvaluationsWanted
from ..evaluation_charts import difference_chart
from ..list_url import ListUrl
from ..page import ListPage, Page
from ..rendering import redirect
from ..state import state_of
from ..who import Builder, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/evaluations")
_USUAL: dict[str, object] = {"sort": "-began", "size": 50}
_ITEMS_USUAL: dict[str, object] = {"show": "all", "size": 50}


@router.get("", dependencies=[needs("read")])
def evaluations(
    page: Page, session: Reading, part: ListPage, wanted: EvaluationsWanted, sort: EvaluationListSort = "-began"
) -> Response:
    """Every evaluation, with filters."""
    return page(
        "evaluations/list.html",
        evaluations=list_evaluations(session, wanted, part, sort),
        wanted=wanted,
        sort=sort,
        state_options=any_or_one(get_args(RecordState)),
        gate_options=any_or_one(get_args(GateState)),
        url=ListUrl("/evaluations", _USUAL, **wanted.model_dump(), sort=sort, page=part.number, size=part.size),
    )


@router.get("/{evaluation_id}", dependencies=[needs("read")])
def evaluation(page: Page, session: Reading, evaluation_id: str) -> Response:
    """One evaluation."""
    return page("evaluations/evaluation.html", **_one(session, evaluation_id), idempotency_key=new_secret())


@router.get("/{evaluation_id}/now", dependencies=[needs("read")])
def now(page: Page, session: Reading, evaluation_id: str, scores: int = -1) -> Response:
    """How far it is, for a page that follows it; when there is more to see, the page is loaded anew."""
    progress = evaluation_progress(session, evaluation_id)
    if not progress.is_live or progress.scored != scores:
        return Response(headers={"hx-refresh": "true"})
    return page.fragment("evaluations/now.html", progress=progress)


@router.get("/{evaluation_id}/items", dependencies=[needs("read")])
def items(
    page: Page,
    session: Reading,
    evaluation_id: str,
    part: ListPage,
    task: Annotated[str, Query(max_length=200)] = "",
    show: ItemShow = "all",
) -> Response:
    """Single questions, the wrong ones first."""
    found = evaluation_detail(session, evaluation_id)
    tasks = [score.task for score in found.scores]
    chosen = task or (tasks[0] if tasks else "")
    if chosen not in tasks and (task or not tasks):
        raise NotFoundError(f"evaluation {evaluation_id} has no scores of {task or 'any task'}")
    score = next(each for each in found.all_scores if each.task == chosen)
    values: dict[str, object] = {"task": chosen, "show": show, "page": part.number, "size": part.size}
    return page(
        "evaluations/items.html",
        evaluation=found,
        score=score,
        tasks=tasks,
        show=show,
        shows=get_args(ItemShow),
        found=items_of(session, evaluation_id, chosen, show, part),
        url=ListUrl(f"/evaluations/{evaluation_id}/items", _ITEMS_USUAL, **values),
    )


@router.post("/{evaluation_id}/delete")
def delete(request: Request, actor: Builder, evaluation_id: str) -> Response:
    """Delete it, with its scores and questions."""
    with state_of(request).database.writing() as session:
        delete_evaluation(session, actor, evaluation_id)
    return redirect("/evaluations", f"Evaluation {evaluation_id} was deleted.")


def _one(session: Session, evaluation_id: str) -> dict[str, Any]:
    found = evaluation_detail(session, evaluation_id)
    return {"evaluation": found, "progress": found.progress, "chart": difference_chart(found.all_scores, found.gate_points)}
