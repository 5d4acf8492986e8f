"""What a deployment counts, as it goes along: rates and gauges for its live numbers and lines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from pydantic import BaseModel, ConfigDict
from sqlalchemy import select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..models import DeploymentSample
from .queries import samples
from .recent import RATES_OVER
from .records import Rates, TimedSample

__all__ = ["LivePoint", "LiveValues", "live_points", "live_values", "token_rates"]

_SPARK_OVER = timedelta(minutes=3)
_SPARK_STEP_S = 6.0
_KEPT = timedelta(minutes=15)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LiveValues(BaseModel):
    """The numbers of a moment; None where nothing is known."""

    model_config = ConfigDict(frozen=True)

    tokens_per_s: float | None
    """Generated, over about the last ten seconds."""
    prompt_tokens_per_s: float | None
    running: int
    waiting: int
    ttft_s: float | None
    """Mean of the requests that got their first token in that time."""
    pages_used: int
    pages_cached: int
    pages_free: int
    pages_quarantined: int
    pages_share: float
    """Of the pool, from 0 to 1: how much is neither free nor given up when needed."""
    checks_per_s: float | None
    checks: int
    """Since its engine process began."""
    mismatches: int


class LivePoint(BaseModel):
    """Numbers, and when."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    values: LiveValues

    @property
    def number(self) -> int:
        """Microseconds since 1970: grows with time, so that a stream can be resumed after it."""
        return _number(self.at)


def _number(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def live_values(latest: TimedSample, rates: Rates | None) -> LiveValues:
    """Numbers from a sample and how fast it grew."""
    now = latest.values
    return LiveValues(
        tokens_per_s=rates.generated_tokens if rates else None,
        prompt_tokens_per_s=rates.prompt_tokens if rates else None,
        running=now.running,
        waiting=now.waiting,
        ttft_s=rates.ttft_s if rates else None,
        pages_used=now.pages_used,
        pages_cached=now.pages_cached,
        pages_free=now.pages_free,
        pages_quarantined=now.pages_quarantined,
        pages_share=now.pages_taken / now.pages if now.pages else 0.0,
        checks_per_s=rates.tag_checks if rates else None,
        checks=now.checks,
        mismatches=now.mismatches,
    )


def live_points(session: Session, deployment_id: str, after: int = 0) -> list[LivePoint]:
    """The numbers of every sample after one, the oldest first. One statement.

    Args:
        session: where to read.
        deployment_id: whose.
        after: a point's number; only later ones are told. At most a quarter of an hour is.
    """
    now = utc_now()
    since = max(_EPOCH + timedelta(microseconds=min(after, _number(now))), now - _KEPT)
    timed = samples(session, deployment_id, since - RATES_OVER)
    points = []
    first = 0
    for index, latest in enumerate(timed):
        while latest.at - timed[first].at > RATES_OVER:
            first += 1
        if latest.at > since:
            rates = Rates.between(timed[first], latest) or (Rates.between(timed[index - 1], latest) if index else None)
            points.append(LivePoint(at=latest.at, values=live_values(latest, rates)))
    return points


def token_rates(session: Session, deployment_ids: Sequence[str]) -> dict[str, list[float | None]]:
    """Generated tokens a second of several over the last minutes, in steps of seconds, the oldest first. One statement."""
    sample = DeploymentSample
    tokens = sample.values["generated_tokens"].as_integer()
    known = (sample.deployment_id.in_(deployment_ids), sample.at > utc_now() - _SPARK_OVER)
    found: dict[str, list[tuple[datetime, int]]] = {}
    for id_, at, count in session.execute(select(sample.deployment_id, sample.at, tokens).where(*known).order_by(sample.at)):
        of_one = found.setdefault(id_, [])
        if not of_one or (at - of_one[-1][0]).total_seconds() >= _SPARK_STEP_S:
            of_one.append((at, count))
    return {id_: [_rate(*pair) for pair in pairwise(of_one)] for id_, of_one in found.items()}


def _rate(before: tuple[datetime, int], now: tuple[datetime, int]) -> float | None:
    """None where the engine process was started again between the two."""
    return (now[1] - before[1]) / (now[0] - before[0]).total_seconds() if now[1] >= before[1] else None
