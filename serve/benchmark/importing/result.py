"""One measurement as a file tells it, before it is known to which run it belongs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..points import Point
from ..records import Driver
from ..workload import Workload

__all__ = ["Result"]

_ALIKE = 0.05
"""Means of random lengths differ by less than this from seed to seed."""


@dataclass(frozen=True)
class Result:
    """A point, and what the file says around it."""

    point: Point
    """Its repeat is 0."""
    driver: Driver
    driver_version: str | None
    model: str
    url: str | None
    requests: int
    workload: Workload
    """Its number of requests is left open."""
    seed: int | None
    command: str
    files: tuple[Path, ...]
    """That it was read from, the one to name first."""
    sha256: str

    def belongs_to(self, other: Result) -> bool:
        """Whether both asked the same of the same, as far as the files say."""
        if (self.driver, self.driver_version, self.model, self.url) != (
            other.driver,
            other.driver_version,
            other.model,
            other.url,
        ):
            return False
        mine, others = self.workload, other.workload
        if self.driver != "vllm":
            return mine == others
        pairs = ((mine.input_tokens, others.input_tokens), (mine.output_tokens, others.output_tokens))
        return all(abs(one - two) <= _ALIKE * two for one, two in pairs)

    def as_repeat(self, repeat: int) -> Point:
        """Its point, as one of several at its concurrency."""
        return self.point.model_copy(update={"repeat": repeat})
