"""What the page that compares runs shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from roundhouse.serve.benchmark.differences import Difference
from roundhouse.serve.benchmark.statistics import QUANTITIES, Ratio

from .compare_asked import CompareAsked
from .compare_quantities import USUAL
from .records import BenchmarkRow

__all__ = ["Comparison", "LevelBeside", "PrefillBeside", "PrefillCompared", "RunBeside", "RunVerdict", "verdict_of"]

RunVerdict = Literal["faster", "slower", "no clear difference", "not known"]


class LevelBeside(NamedTuple):
    """A run at one concurrency: medians over repeats; latencies in seconds. A tuple, because a page may show a thousand."""

    concurrency: int
    repeats: int
    output_tokens_per_s: float
    output_tokens_per_s_least: float
    output_tokens_per_s_most: float
    requests_per_s: float
    ttft_p50: float | None
    ttft_p99: float | None
    inter_token_p50: float | None
    end_to_end_p50: float | None
    noisy: int
    """Repeats that others on the machine disturbed."""


def verdict_of(ratio: Ratio | None, *, more_is_better: bool = True) -> RunVerdict:
    """What a ratio over the base says, beyond noise."""
    if ratio is None or ratio.value is None or ratio.low is None:
        return "not known"
    if not ratio.differs:
        return "no clear difference"
    return "faster" if (ratio.value > 1) == more_is_better else "slower"


class PrefillBeside(NamedTuple):
    """A run at one prompt length."""

    tokens_per_s: float
    """The median over repeats."""
    repeats: int
    ratio: Ratio | None
    """Over the base's; None of the base itself."""

    @property
    def verdict(self) -> RunVerdict:
        """What the ratio says, beyond noise."""
        return verdict_of(self.ratio)


@dataclass(frozen=True)
class PrefillCompared:
    """Prefill of all runs."""

    lengths: tuple[int, ...] = ()
    """Of prompts, that are shown."""
    left_out: int = 0
    """Lengths that are not."""
    of: Mapping[str, Mapping[int, PrefillBeside]] = field(default_factory=dict)
    """By run and prompt length."""


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
    """Over the base's, of the quantity and at the concurrency asked for; None of the base itself."""
    verdict: RunVerdict = "not known"
    """What the ratio says, beyond noise."""

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
    prefill: PrefillCompared = PrefillCompared()
    warnings: Sequence[str] = ()
    """Why they may not be comparable, each a sentence."""
    differences: Sequence[Difference] = ()
    """What is shown of what differs, and of what does not where that was asked for."""
    equal: int = 0
    """How many facts are the same everywhere."""

    @property
    def base(self) -> RunBeside | None:
        """What the others are compared with."""
        return next((run for run in self.runs if run.is_base), None)

    @property
    def usual(self) -> str:
        """The quantity that an address need not name."""
        return USUAL

    @property
    def by(self) -> str:
        """Of which quantity ratios are taken, in words."""
        return QUANTITIES[self.asked.by].words

    @property
    def has_noise(self) -> bool:
        """Whether a point of any was disturbed."""
        return any(run.row.noisy for run in self.runs)

    @property
    def difference_parts(self) -> dict[str, list[Difference]]:
        """What differs, by what it is about."""
        parts: dict[str, list[Difference]] = {}
        for each in self.differences:
            parts.setdefault(each.part, []).append(each)
        return parts

    @property
    def is_wide(self) -> bool:
        """Whether there are too many runs for a column each."""
        return len(self.runs) > 8  # as many as fit beside each other
