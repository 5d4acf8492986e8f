"""Asking for evaluations."""

from __future__ import annotations

import dataclasses

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.accuracy.wish import EvaluationWish
from roundhouse.serve.settings import Overrides

from ..access.actor import Actor
from ..access.sealing import Sealer
from ..benchmarks.placing import Place, job_of, place, same_request
from ..errors import ConflictError, NotFoundError
from ..jobs.asking import ask_for, asked_before
from ..models import EvaluationRun, Job
from .requests import EvaluationRequest

__all__ = ["ask_evaluation"]


def ask_evaluation(session: Session, actor: Actor, wanted: EvaluationRequest, sealer: Sealer, *, key: str | None = None) -> Job:
    """Have accuracy measured by a worker: a job, whose result names the evaluation.

    Args:
        session: a writing transaction.
        actor: who asks.
        wanted: what to evaluate.
        sealer: encrypts an endpoint's key.
        key: drawn by whoever asks; None: every request is a new one.

    Raises:
        ForbiddenError: this actor may not.
        NotFoundError: there is no such engine, deployment or evaluation.
        ConflictError: no host has what is needed, or the deployment does not answer.
        UsageError: the key was used for another wish.
    """
    actor.require("build")
    asked = wanted.model_dump(mode="json", exclude={"api_key"}, exclude_defaults=True)
    if (known := asked_before(session, actor, key, "evaluate")) is not None:
        return same_request(known, asked)
    where = place(session, wanted, sealer, beside=wanted.against_engine_id)
    if wanted.against_evaluation_id is not None:
        where = _with_base(session, where, wanted.against_evaluation_id)
    wish = EvaluationWish(
        engine=where.engine if where.url is None else None,
        url=where.url,
        model=where.model,
        api_key_variable=where.key_variable,
        server=wanted.server,
        tasks=wanted.tasks,
        against=wanted.against_engine_id or wanted.against_evaluation_id,
        limit=wanted.limit,
        data=wanted.data,
        gate_points=wanted.gate_points,
        seed=wanted.seed,
        overrides=(where.overrides or Overrides()) if where.url is None else Overrides(),
        request_timeout_s=wanted.request_timeout_s,
    )
    payload = {"wish": wish.model_dump(mode="json"), "asked": asked, "deployment_id": where.deployment_id}
    job = job_of("evaluate", where, payload, actor, key)
    return ask_for(session, actor, job, action="evaluate", name=where.name, url=where.url, host=where.host)


def _with_base(session: Session, where: Place, evaluation_id: str) -> Place:
    """Where it is evaluated, which must be where the answers of the base lie."""
    base = select(EvaluationRun).where(EvaluationRun.id == evaluation_id, EvaluationRun.deleted_at.is_(None))
    row = session.scalar(base)
    if row is None:
        raise NotFoundError(f"there is no evaluation {evaluation_id}")
    if where.host not in (None, row.host) or where.home not in (None, row.home):
        raise ConflictError(
            f"evaluation {evaluation_id} lies on {row.host} in {row.home}, and {where.name} is evaluated elsewhere",
            hint=f"Evaluate it on {row.host}, or name an engine to compare with.",
        )
    return dataclasses.replace(where, host=row.host, home=row.home)
