"""How long requests wait for tokens, counted by upper bounds as Prometheus does."""

from __future__ import annotations

from bisect import bisect_left

from .status import Histogram

__all__ = ["LatencyHistogram"]

_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class LatencyHistogram:
    """Counts of seconds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_S) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one value."""
        self._counts[bisect_left(_BOUNDS_S, seconds)] += 1
        self._total += seconds

    def snapshot(self) -> Histogram:
        """The counts as of now."""
        return Histogram(bounds=_BOUNDS_S, counts=tuple(self._counts), total=self._total)
