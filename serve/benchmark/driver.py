"""What makes the load: a driver, what it is asked for, and what it saw."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .measuring import MeasuredRequest
from .points import TokensFrom
from .records import Driver
from .workload import Workload

__all__ = ["LoadDriver", "Measured", "PointWish"]


@dataclass(frozen=True)
class PointWish:
    """What a driver is to measure: a workload at one concurrency, once."""

    workload: Workload
    concurrency: int
    requests: int
    seed: int
    """Differs between points, so that no prompt comes twice."""
    timeout_s: float


@dataclass(frozen=True)
class Measured:
    """What a driver saw."""

    requests: Sequence[MeasuredRequest]
    tokens_from: TokensFrom
    files: Sequence[tuple[str, Path]] = field(default_factory=tuple)
    """Raw files: name, and where they are until the driver is asked again or closed."""


class LoadDriver(Protocol):
    """Makes the load. As a context manager it is ready on entry and leaves nothing on exit."""

    name: Driver
    version: str | None

    def measure(self, wish: PointWish, stop: threading.Event) -> Measured:
        """Send the requests and wait for them.

        Raises:
            ServeError: the load could not be made, which says nothing of the subject.
            BenchmarkStoppedError: ``stop`` was set.
        """
        ...
