"""What people do about builds and other jobs: ask for one, cancel it, have it tried again."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.recipe import Recipe
from roundhouse.build.record import default_name
from roundhouse.errors import PlanRefusedError, RoundhouseError, UsageError

from ..access.actor import Actor
from ..access.audit import audit
from ..database.database import Database
from ..database.turns import take_turn
from ..deployments.actions import start_again
from ..deployments.unloading import unload_cancelled
from ..errors import ConflictError, NotFoundError
from ..jobs import NewJob, cancel_job, retry_job
from ..jobs.asking import ask_for, asked_before
from ..models import LIVE_JOB_STATES, Job
from ..models_allowed import AllowedModels
from ..plans.recipe_text import given_keys
from ..plans.shown import why_not_built
from .placing import place

__all__ = ["ask_build", "ask_cancel", "ask_retry"]

_ATTEMPTS = 2
"""A worker may die once under a build."""


def ask_build(database: Database, actor: Actor, recipe: Recipe, models: AllowedModels, key: str | None = None) -> Job:
    """Put a build in line. What the plan refuses is refused here; who asks again with the same key gets the same job.

    Planning reads files, for a second or more where disks are slow; it is done before the transaction that writes.

    Args:
        database: where the line is.
        actor: who asks.
        recipe: what to build.
        models: what it may read.
        key: drawn by whoever asks; None: every request is a new one.

    Raises:
        PlanRefusedError: no worker may build it, or this version does not.
        UsageError: it names files that may not be read, or the key was used for something else.
        ModelError: its model cannot be read here.
    """
    actor.require("build")
    planned = _planned(database, actor, recipe, models, key)
    with database.writing() as session:
        # First: what was asked for once may not be possible any more.
        if (known := asked_before(session, actor, key, "build", {"recipe": given_keys(recipe)})) is not None:
            return known
        if isinstance(planned, RoundhouseError):
            raise planned
        return ask_for(session, actor, planned, action="build", name=planned.subject, model=recipe.model)


def _planned(
    database: Database, actor: Actor, recipe: Recipe, models: AllowedModels, key: str | None
) -> NewJob | RoundhouseError:
    """The job, or why there can be none."""
    try:
        with database.reading() as session:
            return _job(session, actor, recipe, models, key)
    except RoundhouseError as error:
        return error


def _job(session: Session, actor: Actor, recipe: Recipe, models: AllowedModels, key: str | None) -> NewJob:
    placing = place(session, recipe, models)
    if (reason := why_not_built(placing.plan)) is not None:
        raise PlanRefusedError(reason, reasons=(reason,))
    placing.require()
    return NewJob(
        kind="build",
        subject=recipe.name or default_name(placing.plan.recipe),
        payload={"recipe": given_keys(recipe)},
        requested_by=actor.name,
        idempotency_key=key,
        target=placing.plan.recipe.target,
        host=placing.host,
        most_attempts=_ATTEMPTS,
    )


def ask_cancel(session: Session, actor: Actor, job_id: int) -> Job:
    """Cancel a job; where that was asked for already, nothing changes.

    Raises:
        NotFoundError: there is none with this number.
        ConflictError: it has ended by itself.
        ForbiddenError: whoever asks may not.
    """
    job = _job_of(session, actor, job_id)
    if job.state == "cancelled" or job.cancel_requested_at is not None:
        return job
    if job.state not in LIVE_JOB_STATES:
        raise ConflictError(f"job {job_id} has ended: it is {job.state}")
    cancel_job(job)
    if job.kind == "undeploy" and job.state == "cancelled":
        unload_cancelled(session, job)
    audit(session, actor, "job.cancel", "job", str(job_id), kind=job.kind, name=job.subject)
    return job


def ask_retry(session: Session, actor: Actor, job_id: int) -> Job:
    """Have a job that did not succeed done once more; its number stays. One that is under way stays as it is.

    Raises:
        NotFoundError: there is none with this number.
        ConflictError: it has succeeded, or its deployment cannot be started any more.
        ForbiddenError: whoever asks may not.
    """
    job = _job_of(session, actor, job_id)
    if job.state in LIVE_JOB_STATES:
        return job
    if job.kind == "deploy" and job.state != "succeeded":
        start_again(session, job)
    try:
        retry_job(job)
    except UsageError as error:
        raise ConflictError(error.message, hint=error.hint) from None
    audit(session, actor, "job.retry", "job", str(job_id), kind=job.kind, name=job.subject)
    return job


def _job_of(session: Session, actor: Actor, job_id: int) -> Job:
    take_turn(session)  # who unloads locks jobs in another order
    job = session.scalar(select(Job).where(Job.id == job_id).with_for_update())
    if job is None:
        raise NotFoundError(f"there is no job {job_id}")
    actor.require("deploy" if job.kind in ("deploy", "undeploy") else "build")
    return job
