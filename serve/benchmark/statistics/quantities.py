"""What of a point is compared: each quantity with its unit, and which way is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..points import Percentiles, Point

__all__ = ["COMPARED", "QUANTITIES", "Quantity", "QuantityName"]

QuantityName = Literal[
    "output_tokens_per_s",
    "input_tokens_per_s",
    "total_tokens_per_s",
    "requests_per_s",
    "ttft_p50",
    "ttft_p99",
    "inter_token_p50",
    "inter_token_p99",
    "end_to_end_p50",
    "end_to_end_p99",
]


@dataclass(frozen=True)
class Quantity:
    """One number of a point."""

    name: QuantityName
    words: str
    """For a table's head."""
    unit: str
    """``tokens/s``, ``requests/s`` or ``s``."""
    more_is_better: bool
    of: Callable[[Point], float | None]
    """None where the point does not have it."""


def _rate(name: QuantityName, words: str, unit: str, of: Callable[[Point], float]) -> Quantity:
    return Quantity(name, words, unit, True, of)


def _latency(name: QuantityName, words: str, of: Callable[[Point], Percentiles | None], part: str) -> Quantity:
    def read(point: Point) -> float | None:
        found = of(point)
        return None if found is None else float(getattr(found, part))

    return Quantity(name, f"{words} {part}", "s", False, read)


QUANTITIES: dict[QuantityName, Quantity] = {
    each.name: each
    for each in (
        _rate("output_tokens_per_s", "output tokens/s", "tokens/s", lambda point: point.output_tokens_per_s),
        _rate("input_tokens_per_s", "input tokens/s", "tokens/s", lambda point: point.input_tokens_per_s),
        _rate("total_tokens_per_s", "total tokens/s", "tokens/s", lambda point: point.total_tokens_per_s),
        _rate("requests_per_s", "requests/s", "requests/s", lambda point: point.requests_per_s),
        _latency("ttft_p50", "TTFT", lambda point: point.ttft, "p50"),
        _latency("ttft_p99", "TTFT", lambda point: point.ttft, "p99"),
        _latency("inter_token_p50", "inter-token", lambda point: point.inter_token, "p50"),
        _latency("inter_token_p99", "inter-token", lambda point: point.inter_token, "p99"),
        _latency("end_to_end_p50", "end to end", lambda point: point.end_to_end, "p50"),
        _latency("end_to_end_p99", "end to end", lambda point: point.end_to_end, "p99"),
    )
}
"""By name, in the order in which they are shown."""

COMPARED: tuple[QuantityName, ...] = ("output_tokens_per_s", "ttft_p50", "inter_token_p50", "end_to_end_p50")
"""What runs are compared by."""
