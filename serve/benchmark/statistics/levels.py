"""All repeats at one concurrency, summed up: what is the usual value, and how far repeats were apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ..points import Point, PrefillPoint
from .quantities import QUANTITIES, QuantityName

__all__ = ["Level", "PrefillLevel", "Spread", "levels_of", "prefill_levels_of"]


@dataclass(frozen=True)
class Spread:
    """One quantity over repeats."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """Of what was measured; None of nothing."""
        known = [value for value in values if value is not None]
        return _spread(known) if known else None


@dataclass(frozen=True)
class Level:
    """One concurrency. Latencies are seconds, and None where no repeat has them."""

    concurrency: int
    repeats: int
    output_tokens_per_s: Spread
    input_tokens_per_s: Spread
    total_tokens_per_s: Spread
    requests_per_s: Spread
    ttft_p50: Spread | None
    ttft_p99: Spread | None
    inter_token_p50: Spread | None
    inter_token_p99: Spread | None
    end_to_end_p50: Spread | None
    end_to_end_p99: Spread | None
    completed: int
    """Requests, of all repeats."""
    failed: int
    """Requests, of all repeats."""
    noisy: int
    """Repeats that others on the machine disturbed."""

    def spread(self, name: QuantityName) -> Spread | None:
        """A quantity by its name."""
        found: Spread | None = getattr(self, name)
        return found


@dataclass(frozen=True)
class PrefillLevel:
    """One prompt length of the prefill measurement."""

    input_tokens: int
    repeats: int
    tokens_per_s: Spread | None
    """None when no prompt was answered; likewise :attr:`ttft_p50`."""
    ttft_p50: Spread | None
    failed: int
    """Requests, of all repeats."""
    noisy: int


def levels_of(points: Iterable[Point]) -> list[Level]:
    """Sum repeats up, one level for each concurrency, the lowest first."""
    by_concurrency: dict[int, list[Point]] = defaultdict(list)
    for point in points:
        by_concurrency[point.concurrency].append(point)
    return [_level(concurrency, by_concurrency[concurrency]) for concurrency in sorted(by_concurrency)]


def prefill_levels_of(points: Iterable[PrefillPoint]) -> list[PrefillLevel]:
    """Sum repeats up, one level for each prompt length, the shortest first."""
    by_length: dict[int, list[PrefillPoint]] = defaultdict(list)
    for point in points:
        by_length[point.input_tokens].append(point)
    return [_prefill_level(length, by_length[length]) for length in sorted(by_length)]


def _level(concurrency: int, points: Sequence[Point]) -> Level:
    spreads = {name: Spread.of(quantity.of(point) for point in points) for name, quantity in QUANTITIES.items()}
    return Level(
        concurrency=concurrency,
        repeats=len(points),
        completed=sum(point.completed for point in points),
        failed=sum(point.failures for point in points),
        noisy=sum(point.noisy for point in points),
        **spreads,  # type: ignore[arg-type] # every point has rates
    )


def _prefill_level(length: int, points: Sequence[PrefillPoint]) -> PrefillLevel:
    return PrefillLevel(
        input_tokens=length,
        repeats=len(points),
        tokens_per_s=Spread.of(point.tokens_per_s for point in points),
        ttft_p50=Spread.of(None if point.ttft is None else point.ttft.p50 for point in points),
        failed=sum(point.failures for point in points),
        noisy=sum(point.noisy for point in points),
    )


def _spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))
