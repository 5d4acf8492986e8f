"""Repeats summed up: medians with their least and most, and ratios within each repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cells import Cell

__all__ = ["IN_PROCESS", "TRANSFORMERS", "TRITON", "Ratio", "Spread", "Summary", "ratio", "spread", "summarize"]

IN_PROCESS, TRITON = "in process", "Triton"
TRANSFORMERS = ("transformers bf16", "transformers float32")


@dataclass(frozen=True)
class Spread:
    """A median, and the least and the most of what it is the median of."""

    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Ratio:
    """One system's tokens a second over another's."""

    above: str
    below: str
    spread: Spread


@dataclass(frozen=True)
class Summary:
    """What all repeats at one concurrency come to."""

    concurrency: int
    tokens_per_s: dict[str, Spread]
    """By system."""
    noisy: dict[str, int]
    """Repeats of each system that were disturbed."""
    best_transformers: str
    """The faster of its two dtypes, by its median: the one that counts."""
    ratios: tuple[Ratio, ...]
    """In process and Triton over the better transformers, then Triton over in process."""
    decode_tokens_per_s: Spread | None
    """In process, while all requests decode."""
    transport_ms: Spread
    """What a step takes longer through Triton: the difference of a repeat's two times, over the tokens of one request."""


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    return Spread(median(values), min(values), max(values))


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Of the ratios within each repeat: what slowed both of a repeat cancels out."""
    return spread([one / other for one, other in zip(above, below, strict=True)])


def summarize(cells: Sequence[Cell], concurrency: int) -> Summary:
    """Sum up the cells of one concurrency; every system has one in each repeat."""
    by_system: dict[str, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: cell.repeat):
        if cell.concurrency == concurrency:
            by_system.setdefault(cell.system, []).append(cell)
    speeds = {system: [cell.tokens_per_s for cell in own] for system, own in by_system.items()}
    best = max(TRANSFORMERS, key=lambda system: median(speeds[system]))
    ours, served = by_system[IN_PROCESS], by_system[TRITON]
    decoding = [cell.run.decode_tokens_per_s for cell in ours if cell.run.decode_tokens_per_s is not None]
    return Summary(
        concurrency=concurrency,
        tokens_per_s={system: spread(values) for system, values in speeds.items()},
        noisy={system: sum(cell.noisy for cell in own) for system, own in by_system.items()},
        best_transformers=best,
        ratios=tuple(
            Ratio(above, below, ratio(speeds[above], speeds[below]))
            for above, below in ((IN_PROCESS, best), (TRITON, best), (TRITON, IN_PROCESS))
        ),
        decode_tokens_per_s=spread(decoding) if decoding else None,
        transport_ms=spread([_transport_ms(one, other) for one, other in zip(served, ours, strict=True)]),
    )


def _transport_ms(served: Cell, ours: Cell) -> float:
    steps = ours.run.output_tokens / ours.concurrency
    return (served.run.seconds - ours.run.seconds) / steps * 1000
