"""What is served now, with how it did over the last minutes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from roundhouse.serve.triton.samples import Sample

from ..deployments.recent import STILL_NOW, latest_rates
from ..deployments.records import Rates, TimedSample
from ..deployments.silence import was_silent
from ..integrity.queries import totals_of
from ..integrity.records import IntegrityTotals
from ..models import LIVE_STATES, Deployment, DeploymentSample, EngineRecord
from .records import ServingRow

__all__ = ["serving_now"]

_MOST = 12
"""Deployments; a list with more is on their own page."""
_HISTORY = timedelta(minutes=3)
_POINTS = 30


def serving_now(session: Session, now: datetime) -> tuple[tuple[ServingRow, ...], int, list[IntegrityTotals]]:
    """The live deployments by name, how many there are, and what those that were heard of just now have checked.

    Three statements.
    """
    live = Deployment.state.in_(LIVE_STATES)
    count = session.scalar(select(func.count()).select_from(Deployment).where(live)) or 0
    wanted = select(Deployment, EngineRecord.name).join(EngineRecord, EngineRecord.id == Deployment.engine_id).where(live)
    found = session.execute(wanted.order_by(Deployment.name, Deployment.id).limit(_MOST)).all()
    samples = _samples(session, [deployment.id for deployment, _ in found], now - _HISTORY)
    rows, totals = [], []
    for deployment, engine_name in found:
        of_it = samples.get(deployment.id, [])
        latest = of_it[-1].values if of_it and of_it[-1].at > now - STILL_NOW else None
        rows.append(_row(deployment, engine_name, of_it, latest, now))
        if latest is not None:
            totals.append(totals_of(deployment.id, deployment.name, latest))
    return tuple(rows), count, totals


def _samples(session: Session, ids: Sequence[str], since: datetime) -> dict[str, list[TimedSample]]:
    known = (DeploymentSample.deployment_id.in_(ids), DeploymentSample.at > since)
    found: dict[str, list[TimedSample]] = {}
    for row in session.scalars(select(DeploymentSample).where(*known).order_by(DeploymentSample.at)):
        found.setdefault(row.deployment_id, []).append(TimedSample(at=row.at, values=Sample.model_validate(row.values)))
    return found


def _row(row: Deployment, engine_name: str, samples: list[TimedSample], latest: Sample | None, now: datetime) -> ServingRow:
    rates = None if latest is None else latest_rates(samples)
    return ServingRow(
        id=row.id,
        name=row.name,
        engine_id=row.engine_id,
        engine_name=engine_name,
        host=row.host,
        state=row.state,
        silent=was_silent(row, now),
        reason=row.reason,
        tokens_per_s=None if rates is None else rates.generated_tokens,
        history=_history(samples),
        running=None if latest is None else latest.running,
        waiting=None if latest is None else latest.waiting,
        pages_taken=None if latest is None else latest.pages_taken,
        pages=None if latest is None else latest.pages,
        pages_quarantined=None if latest is None else latest.pages_quarantined,
        mismatches=None if latest is None else latest.mismatches,
    )


def _history(samples: list[TimedSample]) -> tuple[float | None, ...]:
    """Tokens a second between samples that are far enough apart for so many points."""
    apart = max(1, len(samples) // _POINTS)
    rates = (Rates.between(first, last) for first, last in pairwise(samples[::-apart][::-1]))
    return tuple(None if each is None else round(each.generated_tokens, 2) for each in rates)
