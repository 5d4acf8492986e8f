"""Two runs side by side: which of their repeats belong together, and at which concurrencies both have some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .records import Benchmark
from .statistics import QUANTITIES, QuantityName

__all__ = ["are_paired", "prefill_values_of", "shared_concurrencies", "shared_lengths", "values_of"]

_Values = tuple[Sequence[float], Sequence[float]]


def are_paired(base: Benchmark, other: Benchmark) -> bool:
    """Whether they were measured by turns, repeat by repeat."""
    return base.header.session is not None and base.header.session == other.header.session


def shared_concurrencies(base: Benchmark, other: Benchmark) -> list[int]:
    """At which both have points, the lowest first."""
    return sorted({point.concurrency for point in base.points} & {point.concurrency for point in other.points})


def shared_lengths(base: Benchmark, other: Benchmark) -> list[int]:
    """Prompt lengths at which both measured prefill, the shortest first."""
    return sorted({point.input_tokens for point in base.prefill} & {point.input_tokens for point in other.prefill})


def values_of(base: Benchmark, other: Benchmark, concurrency: int, name: QuantityName) -> _Values:
    """What the repeats of both measured of a quantity; those of paired runs in the same order, and only whole pairs."""
    read = QUANTITIES[name].of
    return _matched(
        {point.repeat: read(point) for point in base.points if point.concurrency == concurrency},
        {point.repeat: read(point) for point in other.points if point.concurrency == concurrency},
        paired=are_paired(base, other),
    )


def prefill_values_of(base: Benchmark, other: Benchmark, input_tokens: int) -> _Values:
    """The same of prompt tokens a second."""
    return _matched(
        {point.repeat: point.tokens_per_s for point in base.prefill if point.input_tokens == input_tokens},
        {point.repeat: point.tokens_per_s for point in other.prefill if point.input_tokens == input_tokens},
        paired=are_paired(base, other),
    )


def _matched(base: Mapping[int, float | None], other: Mapping[int, float | None], *, paired: bool) -> _Values:
    first = {repeat: value for repeat, value in base.items() if value is not None}
    second = {repeat: value for repeat, value in other.items() if value is not None}
    if not paired:
        return list(first.values()), list(second.values())
    both = sorted(first.keys() & second.keys())
    return [first[repeat] for repeat in both], [second[repeat] for repeat in both]
