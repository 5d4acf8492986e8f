"""A run as its page shows it: each concurrency and each prompt length over all its repeats."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from roundhouse.serve.benchmark.points import EngineCounts, Percentiles, Point, PrefillPoint

__all__ = ["CountsShown", "GpuShown", "LatencyShown", "LevelShown", "PrefillShown", "levels_shown", "prefill_shown"]


@dataclass(frozen=True)
class LatencyShown:
    """Seconds: of each percentile the median over repeats."""

    p50: float
    p90: float | None
    p95: float | None
    """None where an imported file does not say."""
    p99: float
    p50_least: float
    p50_most: float
    """Of the repeats."""


@dataclass(frozen=True)
class CountsShown:
    """What the engine counted at one concurrency: the most of moments, the sum of events."""

    kv_pages: int
    kv_pages_used_most: int
    kv_share_mean: float
    """Of the pool, over time and repeats."""
    running_most: int
    waiting_most: int
    cached_share: float | None
    """Of prompt tokens: not computed, because the prefix cache had them."""
    steps: int
    preemptions: int
    checks: int
    """Of tags and of content."""
    mismatches: int


@dataclass(frozen=True)
class GpuShown:
    """One GPU at one concurrency."""

    index: int
    name: str
    memory_used_most: int
    utilization_mean: float | None
    energy_j: float | None
    """Of all repeats."""
    output_tokens_per_j: float | None
    """Of all GPUs' output and this one's energy, where it is the only one."""


@dataclass(frozen=True)
class LevelShown:
    """All repeats at one concurrency."""

    concurrency: int
    points: tuple[Point, ...]
    output_tokens_per_s: float
    output_least: float
    output_most: float
    input_tokens_per_s: float
    total_tokens_per_s: float
    requests_per_s: float
    ttft: LatencyShown | None
    inter_token: LatencyShown | None
    end_to_end: LatencyShown | None
    completed: int
    failed: dict[str, int]
    """By kind of error."""
    cancelled: int
    noisy: int
    """Points that were disturbed."""
    other_cores_most: float | None
    """Of all repeats."""
    engine: CountsShown | None
    gpus: tuple[GpuShown, ...]

    @property
    def repeats(self) -> int:
        """How many there are."""
        return len(self.points)

    @property
    def failures(self) -> int:
        """Of every kind."""
        return sum(self.failed.values())

    @property
    def asked(self) -> int:
        """Requests that were sent."""
        return self.completed + self.failures + self.cancelled


@dataclass(frozen=True)
class PrefillShown:
    """All repeats at one prompt length."""

    input_tokens: int
    repeats: int
    tokens_per_s: float | None
    """None when no prompt was answered; likewise the three below."""
    least: float | None
    most: float | None
    ttft_p50: float | None
    """Seconds."""
    failed: int
    noisy: int
    other_cores_most: float | None
    """Of all repeats."""


def levels_shown(points: Iterable[Point]) -> tuple[LevelShown, ...]:
    """By concurrency."""
    at: defaultdict[int, list[Point]] = defaultdict(list)
    for point in points:
        at[point.concurrency].append(point)
    return tuple(_level(concurrency, at[concurrency]) for concurrency in sorted(at))


def prefill_shown(points: Iterable[PrefillPoint]) -> tuple[PrefillShown, ...]:
    """By prompt length."""
    at: defaultdict[int, list[PrefillPoint]] = defaultdict(list)
    for point in points:
        at[point.input_tokens].append(point)
    return tuple(_prefill(length, at[length]) for length in sorted(at))


def _level(concurrency: int, points: Sequence[Point]) -> LevelShown:
    speeds = [point.output_tokens_per_s for point in points]
    failed: Counter[str] = Counter()
    for point in points:
        failed.update(point.failed)
    others = [point.other_cores for point in points if point.other_cores is not None]
    return LevelShown(
        concurrency=concurrency,
        points=tuple(points),
        output_tokens_per_s=median(speeds),
        output_least=min(speeds),
        output_most=max(speeds),
        input_tokens_per_s=median(point.input_tokens_per_s for point in points),
        total_tokens_per_s=median(point.total_tokens_per_s for point in points),
        requests_per_s=median(point.requests_per_s for point in points),
        ttft=_latency(points, lambda point: point.ttft),
        inter_token=_latency(points, lambda point: point.inter_token),
        end_to_end=_latency(points, lambda point: point.end_to_end),
        completed=sum(point.completed for point in points),
        failed=dict(failed.most_common()),
        cancelled=sum(point.cancelled for point in points),
        noisy=sum(point.noisy for point in points),
        other_cores_most=max(others, default=None),
        engine=_counts([point.engine for point in points if point.engine is not None]),
        gpus=_gpus(points),
    )


def _latency(points: Sequence[Point], of: Callable[[Point], Percentiles | None]) -> LatencyShown | None:
    known = [found for found in map(of, points) if found is not None]
    if not known:
        return None
    halves = [each.p50 for each in known]
    return LatencyShown(
        p50=median(halves),
        p90=_median_of(each.p90 for each in known),
        p95=_median_of(each.p95 for each in known),
        p99=median(each.p99 for each in known),
        p50_least=min(halves),
        p50_most=max(halves),
    )


def _median_of(values: Iterable[float | None]) -> float | None:
    """Of what is known."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _counts(counts: Sequence[EngineCounts]) -> CountsShown | None:
    if not counts:
        return None
    pages, prompts = max(each.kv_pages for each in counts), sum(each.prompt_tokens for each in counts)
    return CountsShown(
        kv_pages=pages,
        kv_pages_used_most=max(each.kv_pages_used_most for each in counts),
        kv_share_mean=sum(each.kv_pages_used_mean for each in counts) / len(counts) / pages if pages else 0.0,
        running_most=max(each.running_most for each in counts),
        waiting_most=max(each.waiting_most for each in counts),
        cached_share=sum(each.cached_tokens for each in counts) / prompts if prompts else None,
        steps=sum(each.steps for each in counts),
        preemptions=sum(each.preemptions for each in counts),
        checks=sum(each.tag_checks + each.content_checks for each in counts),
        mismatches=sum(each.tag_mismatches + each.content_mismatches for each in counts),
    )


def _gpus(points: Sequence[Point]) -> tuple[GpuShown, ...]:
    uses = [use for point in points for use in point.gpus]
    indexes = sorted({use.index for use in uses})
    output = sum(point.output_tokens for point in points if point.gpus)
    shown = []
    for index in indexes:
        of_it = [use for use in uses if use.index == index]
        energies = [use.energy_j for use in of_it if use.energy_j is not None]
        busy = [use.utilization_mean for use in of_it if use.utilization_mean is not None]
        energy = sum(energies) if len(energies) == len(of_it) else None
        shown.append(
            GpuShown(
                index=index,
                name=of_it[0].name,
                memory_used_most=max(use.memory_used_most for use in of_it),
                utilization_mean=sum(busy) / len(busy) if busy else None,
                energy_j=energy,
                output_tokens_per_j=output / energy if energy and len(indexes) == 1 else None,
            )
        )
    return tuple(shown)


def _prefill(length: int, points: Sequence[PrefillPoint]) -> PrefillShown:
    speeds = [point.tokens_per_s for point in points if point.tokens_per_s is not None]
    return PrefillShown(
        input_tokens=length,
        repeats=len(points),
        tokens_per_s=_median_of(speeds),
        least=min(speeds, default=None),
        most=max(speeds, default=None),
        ttft_p50=_median_of(None if point.ttft is None else point.ttft.p50 for point in points),
        failed=sum(point.failures for point in points),
        noisy=sum(point.noisy for point in points),
        other_cores_most=max((point.other_cores for point in points if point.other_cores is not None), default=None),
    )
