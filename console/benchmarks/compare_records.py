"""What the page that compares runs shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from roundhouse.serve.benchmark.statistics import Ratio

from .compare_asked import CompareAsked
from .differences import LinedUp
from .records import BenchmarkRow

__all__ = ["Comparison", "LevelBeside", "RunBeside", "RunVerdict"]

RunVerdict = Literal["faster", "slower", "no clear difference", "not known"]


class LevelBeside(NamedTuple):
    """A run at one concurrency: medians over repeats; latencies in seconds. A tuple, because a page may show a thousand."""

    concurrency: int
    repeats: int
    output_tokens_per_s: float
    output_tokens_per_s_least: float
    output_tokens_per_s_most: float
    ttft_p50: float | None
    ttft_p99: float | None
    inter_token_p50: float | None
    noisy: int
    """Repeats that others on the machine disturbed."""


@dataclass(frozen=True)
class RunBeside:
    """One of the runs."""

    row: BenchmarkRow
    number: int
    """Its place, from 1: how pictures, and tables of many, call it."""
    is_base: bool
    levels: Mapping[int, LevelBeside] = field(default_factory=dict)
    """By concurrency."""
    ratio: Ratio | None = None
    """Output tokens a second over the base's, at the concurrency asked for; None of the base itself."""

    @property
    def verdict(self) -> RunVerdict:
        """What the ratio says, beyond noise."""
        if self.ratio is None or self.ratio.value is None or self.ratio.low is None:
            return "not known"
        if not self.ratio.differs:
            return "no clear difference"
        return "faster" if self.ratio.value > 1 else "slower"

    @property
    def is_paired(self) -> bool:
        """Whether it was measured by turns with the base."""
        return self.ratio is not None and self.ratio.method == "paired bootstrap"

    @property
    def label(self) -> str:
        """For pictures: its number and name."""
        return f"{self.number} {self.row.name}"


@dataclass(frozen=True)
class Comparison:
    """Runs side by side."""

    asked: CompareAsked
    runs: Sequence[RunBeside] = ()
    """In the order in which they were asked for."""
    missing: Sequence[str] = ()
    """Ids that no run has, any more or at all."""
    concurrencies: Sequence[int] = ()
    """That any of them was measured at."""
    at: int | None = None
    """Where ratios are taken; None where no run has a point."""
    warnings: Sequence[str] = ()
    """Why they may not be comparable, each a sentence."""
    differences: Sequence[LinedUp] = ()
    """What is shown of what differs, and of what does not where that was asked for."""
    equal: int = 0
    """How many facts are the same everywhere."""

    @property
    def base(self) -> RunBeside | None:
        """What the others are compared with."""
        return next((run for run in self.runs if run.is_base), None)

    @property
    def has_noise(self) -> bool:
        """Whether a point of any was disturbed."""
        return any(run.row.noisy for run in self.runs)

    @property
    def difference_parts(self) -> dict[str, list[LinedUp]]:
        """What differs, by what it is about."""
        parts: dict[str, list[LinedUp]] = {}
        for each in self.differences:
            parts.setdefault(each.part, []).append(each)
        return parts

    @property
    def is_wide(self) -> bool:
        """Whether there are too many runs for a column each."""
        return len(self.runs) > 8  # as many as fit beside each other
