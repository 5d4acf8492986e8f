"""Deleting evaluations: what is known of them at once, and their folders as soon as the workers of their homes see it."""

from __future__ import annotations

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ..access.actor import Actor
from ..access.audit import audit
from ..benchmarks.files import delete_files
from ..benchmarks.silence import is_silent
from ..database.base import utc_now
from ..errors import ConflictError, NotFoundError
from ..models import EvaluationRun, EvaluationScore

__all__ = ["delete_evaluation", "forget_evaluation"]


def delete_evaluation(session: Session, actor: Actor, evaluation_id: str) -> None:
    """Delete an evaluation with its scores and files.

    Raises:
        ForbiddenError: this actor may not.
        NotFoundError: there is none with this id.
        ConflictError: it is being measured.
    """
    actor.require("build")
    now = utc_now()
    wanted = select(EvaluationRun).where(EvaluationRun.id == evaluation_id, EvaluationRun.deleted_at.is_(None))
    row = session.scalar(wanted.with_for_update())
    if row is None:
        raise NotFoundError(f"there is no evaluation {evaluation_id}; nothing was deleted")
    silent = select(EvaluationRun.id).where(EvaluationRun.id == evaluation_id, is_silent(EvaluationRun, now))
    if row.state == "running" and session.scalar(silent) is None:
        raise ConflictError(
            f"evaluation {evaluation_id} is being measured; nothing was deleted",
            hint="Cancel its job, or end its command, first.",
        )
    audit(session, actor, "evaluation.delete", "evaluation", row.id, name=row.name, host=row.host)
    _empty(session, row.id)
    # The row stays until the folder is gone: a worker would find it again, and bring it back.
    row.deleted_at, row.header, row.sought, row.gate_reasons = now, {}, "", []
    session.flush()


def forget_evaluation(session: Session, evaluation_id: str) -> None:
    """Delete all that is known of an evaluation, whose folder is gone."""
    _empty(session, evaluation_id)
    session.execute(delete(EvaluationRun).where(EvaluationRun.id == evaluation_id))


def _empty(session: Session, evaluation_id: str) -> None:
    session.execute(delete(EvaluationScore).where(EvaluationScore.evaluation_id == evaluation_id))
    delete_files(session, [evaluation_id])
