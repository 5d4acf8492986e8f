"""A job that a worker has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from roundhouse.errors import RoundhouseError

__all__ = ["LEASE", "Claim", "LeaseLostError"]

LEASE = timedelta(seconds=30)
"""How long a worker has a job without being heard of."""


class LeaseLostError(RoundhouseError):
    """Another worker has the job by now, or nobody may do it any more."""


@dataclass(frozen=True)
class Claim:
    """A job that a worker has.

    It has a *lease* on it, which it renews, and a *fence*: a number that grows each time the job is taken. Everything that
    it reports carries the fence. A worker that was thought dead, because it was asleep or cut off, finds its fence outdated
    and its claim lost: it can no longer report or publish anything.
    """

    job_id: int
    attempt: int
    fence: int
    kind: str
    payload: dict[str, Any]
