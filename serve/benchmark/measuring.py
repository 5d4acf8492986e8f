"""From single requests to a point: the one place where speed and latency are defined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Literal

from .points import EngineCounts, GpuUse, Percentiles, Point, PrefillPoint, TokensFrom

__all__ = ["MeasuredRequest", "percentiles", "point_of", "prefill_point_of"]


@dataclass(frozen=True)
class MeasuredRequest:
    """One request as its driver saw it; times are seconds on one clock, whose zero is anywhere."""

    outcome: Literal["completed", "failed", "cancelled"]
    began: float
    ended: float
    first_token: float | None = None
    """When the first chunk with a token came."""
    input_tokens: int = 0
    output_tokens: int = 0
    error: str | None = None
    """The kind of error, in a few words, of one that failed."""


def percentiles(values: Sequence[float]) -> Percentiles | None:
    """Of latencies in seconds, interpolated linearly; None of none."""
    if not values:
        return None
    # Without numpy, which takes a tenth of a second and 20 MB of every process that only reads what was measured.
    ordered = sorted(values)
    p50, p90, p95, p99 = (_percentile(ordered, share) for share in (0.50, 0.90, 0.95, 0.99))
    return Percentiles(mean=math.fsum(ordered) / len(ordered), p50=p50, p90=p90, p95=p95, p99=p99, count=len(ordered))


def _percentile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def point_of(
    requests: Sequence[MeasuredRequest],
    *,
    concurrency: int,
    repeat: int,
    began_at: datetime,
    tokens_from: TokensFrom,
    engine: EngineCounts | None = None,
    gpus: Sequence[GpuUse] = (),
    other_cores: float | None = None,
) -> Point:
    """Sum requests up. Only completed ones count for tokens and latencies; all of them for the time that it took.

    Raises:
        ValueError: there are no requests, or all of them together took no time.
    """
    if not requests:
        raise ValueError("a point without requests")
    duration = max(each.ended for each in requests) - min(each.began for each in requests)
    if duration <= 0:
        raise ValueError("a point that took no time")
    done = [each for each in requests if each.outcome == "completed"]
    return Point(
        concurrency=concurrency,
        repeat=repeat,
        began_at=began_at,
        duration_s=duration,
        completed=len(done),
        failed=dict(Counter(each.error or "unknown" for each in requests if each.outcome == "failed")),
        cancelled=sum(each.outcome == "cancelled" for each in requests),
        input_tokens=sum(each.input_tokens for each in done),
        output_tokens=sum(each.output_tokens for each in done),
        tokens_from=tokens_from,
        ttft=percentiles([each.first_token - each.began for each in done if each.first_token is not None]),
        inter_token=percentiles(
            [
                (each.ended - each.first_token) / (each.output_tokens - 1)
                for each in done
                if each.first_token is not None and each.output_tokens > 1
            ]
        ),
        end_to_end=percentiles([each.ended - each.began for each in done]),
        engine=engine,
        gpus=tuple(gpus),
        other_cores=other_cores,
    )


def prefill_point_of(
    requests: Sequence[MeasuredRequest],
    *,
    input_tokens: int,
    repeat: int,
    began_at: datetime,
    engine: EngineCounts | None = None,
    gpus: Sequence[GpuUse] = (),
    other_cores: float | None = None,
) -> PrefillPoint:
    """Sum prompts of one length up. When none was answered the point says why, and has no speed.

    Args:
        requests: one at a time, each with one token of answer.
        input_tokens: as asked for; a server's tokenizer may make more or fewer of it.
        repeat: from 0.
        began_at: UTC.
        engine: what the engine counted meanwhile.
        gpus: what GPUs did meanwhile.
        other_cores: that others kept busy meanwhile.

    Raises:
        ValueError: there are no requests.
    """
    if not requests:
        raise ValueError("a point without requests")
    answered = [each for each in requests if each.outcome == "completed" and each.first_token is not None]
    lost = [each for each in requests if each not in answered and each.outcome != "cancelled"]
    return PrefillPoint(
        input_tokens=input_tokens,
        repeat=repeat,
        began_at=began_at,
        requests=len(answered),
        ttft=percentiles([each.first_token - each.began for each in answered if each.first_token is not None]),
        measured_tokens=median(each.input_tokens for each in answered) if answered else None,
        failed=dict(Counter(each.error or "no first token" for each in lost)),
        engine=engine,
        gpus=tuple(gpus),
        other_cores=other_cores,
    )
