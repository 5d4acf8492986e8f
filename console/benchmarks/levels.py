"""Repeats summed up to levels as columns have them."""

from __future__ import annotations

from collections.abc import Iterable

from roundhouse.serve.benchmark.points import Point
from roundhouse.serve.benchmark.statistics import Level, Spread, levels_of

from .records import LevelRow

__all__ = ["level_rows"]


def level_rows(points: Iterable[Point]) -> tuple[LevelRow, ...]:
    """All repeats at each concurrency, by concurrency."""
    return tuple(_row(level) for level in levels_of(points))


def _row(level: Level) -> LevelRow:
    return LevelRow(
        concurrency=level.concurrency,
        repeats=level.repeats,
        output_tokens_per_s=level.output_tokens_per_s.median,
        output_tokens_per_s_least=level.output_tokens_per_s.least,
        output_tokens_per_s_most=level.output_tokens_per_s.most,
        input_tokens_per_s=level.input_tokens_per_s.median,
        requests_per_s=level.requests_per_s.median,
        ttft_p50=_median(level.ttft_p50),
        ttft_p99=_median(level.ttft_p99),
        inter_token_p50=_median(level.inter_token_p50),
        inter_token_p99=_median(level.inter_token_p99),
        end_to_end_p50=_median(level.end_to_end_p50),
        end_to_end_p99=_median(level.end_to_end_p99),
        failed=level.failed,
        noisy=level.noisy,
    )


def _median(spread: Spread | None) -> float | None:
    return None if spread is None else spread.median
