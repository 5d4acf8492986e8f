"""Asking for benchmarks."""

from __future__ import annotations

from sqlalchemy.orm import Session

from roundhouse.serve.benchmark.wish import BenchmarkWish
from roundhouse.serve.settings import Overrides

from ..access.actor import Actor
from ..access.sealing import Sealer
from ..jobs.asking import ask_for, asked_before
from ..models import Job
from .placing import job_of, place, same_request
from .requests import BenchmarkRequest

__all__ = ["ask_benchmark"]


def ask_benchmark(session: Session, actor: Actor, wanted: BenchmarkRequest, sealer: Sealer, *, key: str | None = None) -> Job:
    """Have speed measured by a worker: a job, whose result names the run.

    Args:
        session: a writing transaction.
        actor: who asks.
        wanted: what to measure.
        sealer: encrypts an endpoint's key.
        key: drawn by whoever asks; None: every request is a new one.

    Raises:
        ForbiddenError: this actor may not.
        NotFoundError: there is no such engine or deployment.
        ConflictError: no host has the engine whole, or the deployment does not answer.
        UsageError: the key was used for another wish.
    """
    actor.require("build")
    asked = wanted.model_dump(mode="json", exclude={"api_key"}, exclude_defaults=True)
    if (known := asked_before(session, actor, key, "benchmark")) is not None:
        return same_request(known, asked)
    where = place(session, wanted, sealer)
    wish = BenchmarkWish(
        engine=where.engine,
        url=where.url,
        model=where.model,
        metrics=where.metrics,
        api_key_variable=where.key_variable,
        tokenizer=wanted.tokenizer,
        server=wanted.server,
        driver=wanted.driver,
        workload=wanted.workload,
        concurrencies=wanted.concurrencies,
        repeats=wanted.repeats,
        prefill_lengths=wanted.prefill_lengths,
        request_timeout_s=wanted.request_timeout_s,
        overrides=where.overrides or Overrides(),
    )
    # Without one that was named, each attempt draws its seed: what was asked before may be in a prefix cache.
    told = wish.model_dump(mode="json", exclude={"seed"}) | ({} if wanted.seed is None else {"seed": wanted.seed})
    payload = {"wish": told, "asked": asked, "deployment_id": where.deployment_id}
    job = job_of("benchmark", where, payload, actor, key)
    return ask_for(session, actor, job, action="benchmark", name=where.name, url=where.url, host=where.host)
