"""What counts as now, of what a deployment has told lately."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from .records import Rates, TimedSample

__all__ = ["RATES_OVER", "STILL_NOW", "latest_rates"]

RATES_OVER = timedelta(seconds=11)
"""Samples come every two seconds: of so many, the first and the last are about ten seconds apart."""
STILL_NOW = timedelta(seconds=60)
"""What was counted longer ago says nothing about now."""


def latest_rates(samples: Sequence[TimedSample]) -> Rates | None:
    """How fast the last of them grew: since the first of those shortly before it, or the one before it if there is none.

    Args:
        samples: of one deployment, the oldest first.
    """
    last = samples[-1]
    shortly = [each for each in samples[:-1] if last.at - each.at <= RATES_OVER] or samples[-2:-1]
    return Rates.between(shortly[0], last) if shortly else None
