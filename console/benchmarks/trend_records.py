"""What the page shows that follows measurements over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from .regressions import Regression, WorseName

__all__ = ["TREND_METRICS", "Trend", "TrendFilter", "TrendMetric", "TrendRange", "TrendRun", "Trended", "Trends"]

TrendRange = Literal["30d", "90d", "1y", "all"]
"""How far back."""
_DAYS: dict[TrendRange, int | None] = {"30d": 30, "90d": 90, "1y": 365, "all": None}

TrendMetric = Literal["most", "alone", "ttft", "inter_token", "prefill", "failed"]


class Trended(NamedTuple):
    """What is followed over time."""

    title: str
    label: str
    """What the axis counts."""
    unit: str
    described: str
    """How to read it."""
    checked: WorseName
    """What of a check it shows."""
    more_is_better: bool = False


TREND_METRICS: dict[TrendMetric, Trended] = {
    "most": Trended(
        "Most tokens/s",
        "Output",
        "tokens/s",
        "Output tokens a second at the concurrency where they are most: more is better.",
        "output_tokens_per_s",
        True,
    ),
    "alone": Trended(
        "Tokens/s alone",
        "Output",
        "tokens/s",
        "Output tokens a second of one request at a time: more is better.",
        "output_tokens_per_s",
        True,
    ),
    "ttft": Trended(
        "Time to the first token, alone",
        "TTFT, p50",
        "ms",
        "Of one request at a time, the median one: less is better.",
        "ttft_p50",
    ),
    "inter_token": Trended(
        "Time between tokens, alone",
        "Inter-token, p50",
        "ms",
        "Of one request at a time, the median one: less is better.",
        "inter_token_p50",
    ),
    "prefill": Trended(
        "Prefill",
        "Prompt",
        "tokens/s",
        "Prompt tokens a second, the most of the prompt lengths: more is better.",
        "prefill_tokens_per_s",
        True,
    ),
    "failed": Trended(
        "Failed requests", "Failed", "requests", "Of all points of a run, prefill included: none is right.", "failures"
    ),
}


class TrendFilter(BaseModel):
    """Which series are followed: those that are all of this. None does not ask."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = None
    hardware: str | None = None
    workload: str | None = None
    """A workload's key."""
    range: TrendRange = "all"
    """Only those that were measured within that, and of these only runs within it; the baseline whenever it was."""
    regressed: bool = False
    """Only those whose newest run is worse than the baseline."""

    @property
    def is_set(self) -> bool:
        """Whether anything is left out."""
        return self != TrendFilter()

    def since(self, now: datetime) -> datetime | None:
        """The earliest moment that counts; None: any."""
        days = _DAYS[self.range]
        return None if days is None else now - timedelta(days=days)


class TrendRun(NamedTuple):
    """A finished run of a series."""

    id: str
    began_at: datetime
    name: str
    most: float | None
    alone: float | None
    prefill: float | None
    """Tokens a second, all three."""
    ttft: float | None
    inter_token: float | None
    """Seconds, both."""
    failed: int
    noisy: int
    is_baseline: bool

    def value(self, metric: TrendMetric) -> float | None:
        """A metric in its unit."""
        found: float | None = getattr(self, metric)
        return 1000 * found if TREND_METRICS[metric].unit == "ms" and found is not None else found


@dataclass(frozen=True)
class Trend:
    """One series: the same model, recipe, hardware, workload and load over time."""

    series: str
    number: int
    """Its place in the list, from 1: how pictures call it."""
    model: str
    recipe: str
    """In a few words."""
    hardware: str
    workload: str
    driver: str
    count: int
    """Finished runs."""
    runs: Sequence[TrendRun]
    """The newest of them, the oldest first."""
    newest: TrendRun
    baseline: TrendRun | None
    """The newest that is pinned."""
    regression: Regression | None
    """What came of the newest run's check against the baseline; None where there is nothing to check."""

    def is_worse(self, metric: TrendMetric) -> bool:
        """Whether the newest run has regressed in what this metric shows, and the metric shows it."""
        of = TREND_METRICS[metric]
        if self.regression is None or self.baseline is None or of.checked not in self.regression.worse:
            return False
        before, now = self.baseline.value(metric), self.newest.value(metric)
        if before is None or now is None:
            return False
        return now < before if of.more_is_better else now > before

    @property
    def label(self) -> str:
        """For pictures."""
        return f"{self.number} {self.model}, {self.recipe}"


@dataclass(frozen=True)
class Trends:
    """A page of series."""

    trends: Sequence[Trend]
    total: int
    """Series with these filters."""
    regressed: int
    """Of these: whose newest run is worse than the baseline."""
    pinned: int
    """Of these: that have a baseline."""
    page: int
    size: int

    @property
    def items(self) -> Sequence[Trend]:
        """For the pager."""
        return self.trends

    @property
    def pages(self) -> int:
        """How many there are; an empty list has one."""
        return max(1, -(-self.total // self.size))

    @property
    def is_beyond(self) -> bool:
        """Whether a part behind the end was asked for, of a list that has any."""
        return self.total > 0 and self.page > self.pages
