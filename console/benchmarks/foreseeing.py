"""What a benchmark that is asked for would do, and about how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..models import BenchmarkRun
from .queries import levels_by_run
from .records import LevelRow
from .requests import BenchmarkRequest

__all__ = ["Foreseen", "foresee"]

_START_S = 30.0
"""An engine that is started for it, and the driver."""


@dataclass(frozen=True)
class Foreseen:
    """What would happen."""

    points: int
    requests: int
    """In all."""
    input_tokens: int
    output_tokens: int
    prefill_requests: int
    """Prompts that are measured apart; about."""
    seconds: float | None
    """About how long; None where nobody knows how fast the subject is."""
    judged_by: str | None
    """The run whose speed this is."""


def foresee(session: Session, wanted: BenchmarkRequest) -> Foreseen:
    """Count it, and judge by the engine's latest run how long it takes. Two statements at most."""
    workload = wanted.workload
    requests = {at: workload.requests(at) * wanted.repeats for at in wanted.concurrencies}
    run = _latest(session, wanted.engine_id)
    levels = levels_by_run(session, [run])[run] if run else ()
    seconds = None
    if levels:
        # A run's speed counts answers and the prompts before them; other lengths make this a guess, as it is called.
        seconds = _START_S + sum(number * workload.output_tokens / _speed(levels, at) for at, number in requests.items())
    return Foreseen(
        points=len(requests) * wanted.repeats,
        requests=sum(requests.values()),
        input_tokens=sum(requests.values()) * workload.input_tokens,
        output_tokens=sum(requests.values()) * workload.output_tokens,
        prefill_requests=len(wanted.prefill_lengths) * wanted.repeats * workload.least_requests,
        seconds=seconds,
        judged_by=run if seconds is not None else None,
    )


def _latest(session: Session, engine_id: str | None) -> str | None:
    if engine_id is None:
        return None
    measured = (BenchmarkRun.engine_id == engine_id, BenchmarkRun.points > 0, BenchmarkRun.deleted_at.is_(None))
    return session.scalar(select(BenchmarkRun.id).where(*measured).order_by(BenchmarkRun.began_at.desc()).limit(1))


def _speed(levels: Sequence[LevelRow], concurrency: int) -> float:
    """Output tokens a second at the level that is nearest."""
    nearest = min(levels, key=lambda level: abs(level.concurrency - concurrency))
    return max(nearest.output_tokens_per_s, 1e-6)
