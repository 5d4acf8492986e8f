"""What pages and the API show of benchmark runs."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from roundhouse.serve.benchmark.points import LiveSample, Point, PrefillPoint
from roundhouse.serve.benchmark.records import BenchmarkHeader, Driver
from roundhouse.serve.history.reader import RecordState

from ..models import JobState

__all__ = [
    "MOST_CHOSEN",
    "BenchmarkChoices",
    "BenchmarkDetail",
    "BenchmarkFilter",
    "BenchmarkJob",
    "BenchmarkRow",
    "BenchmarkSort",
    "FileRow",
    "LevelRow",
    "NumberedSample",
    "SamplesAnswer",
    "WorkloadChoice",
]

MOST_CHOSEN = 200
"""Runs that can be chosen at once, to be compared, taken away as files, or deleted."""

BenchmarkSort = Literal[
    "began", "-began", "most", "-most", "alone", "-alone", "prefill", "-prefill", "name", "-name", "model", "-model"
]
"""What a list is sorted by; with ``-`` the greatest, or latest, come first. Runs without a number come last."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BenchmarkFilter(_Record):
    """Which runs are listed: those that are all of this. None does not ask."""

    text: str | None = None
    """Words, each of which is part of name, model, workload, hardware, host, note, tags or id, in any case."""
    state: RecordState | None = None
    model: str | None = None
    engine: str | None = None
    """An engine's id."""
    weights: str | None = None
    kv_cache: str | None = None
    hardware: str | None = None
    driver: Driver | None = None
    tag: str | None = None
    workload: str | None = None
    """A workload's key."""
    series: str | None = None
    baseline: bool | None = None
    imported: bool | None = None
    job: int | None = None
    """The job that measured it."""

    @property
    def is_set(self) -> bool:
        """Whether anything is left out."""
        return self != BenchmarkFilter()


class BenchmarkRow(_Record):
    """A run in a list."""

    id: str
    state: RecordState
    """What pages show: one that was running when its host fell silent is ``interrupted``, until it is heard of again."""
    silent: bool
    """Whether that is so: its host and home have no worker that tells of it."""
    problem: str | None
    """Why it failed, in a sentence."""
    name: str
    """The engine's, or the model's as an endpoint calls it."""
    model: str
    engine_id: str | None
    target: str | None
    role: str | None
    weights: str | None
    kv_cache: str | None
    guard: str | None
    driver: str
    is_imported: bool
    workload: str
    """In a few words."""
    workload_key: str
    """Equal where the same was asked."""
    hardware: str
    """The device's name, or who serves an endpoint elsewhere."""
    series: str
    """Equal where model, recipe, hardware, workload and driver are."""
    host: str
    """Empty where it was imported here."""
    concurrencies: tuple[int, ...]
    repeats: int
    tokens_per_s_most: float | None
    """Output tokens a second at the concurrency where they are most: the median over repeats."""
    concurrency_most: int | None
    tokens_per_s_alone: float | None
    """The same at concurrency 1."""
    prefill_tokens_per_s: float | None
    """The most of its prompt lengths."""
    points: int
    failed: int
    """Requests, of all points, those of prefill too."""
    noisy: int
    """Points that were disturbed, those of prefill too."""
    began_at: datetime
    ended_at: datetime | None
    """None while it runs, and where it was interrupted."""
    job_id: int | None
    """The job that measured it; None where the command line did."""
    note: str
    is_baseline: bool
    """Pinned: the newest pinned run of a series is what later ones are compared with."""
    tags: tuple[str, ...]

    @property
    def is_live(self) -> bool:
        """Whether more may come."""
        return self.state == "running"

    @property
    def points_wanted(self) -> int:
        """How many points it has when it is done."""
        return len(self.concurrencies) * self.repeats


class LevelRow(_Record):
    """All repeats at one concurrency: medians, with the least and the most of output tokens a second. Latencies in seconds."""

    concurrency: int
    repeats: int
    output_tokens_per_s: float
    output_tokens_per_s_least: float
    output_tokens_per_s_most: float
    input_tokens_per_s: float
    requests_per_s: float
    ttft_p50: float | None
    ttft_p99: float | None
    inter_token_p50: float | None
    inter_token_p99: float | None
    end_to_end_p50: float | None
    end_to_end_p99: float | None
    failed: int
    noisy: int


class FileRow(_Record):
    """A raw file that was kept."""

    name: str
    """With folders."""
    size: int
    """Bytes, compressed."""


class BenchmarkJob(_Record):
    """The job that measured a run."""

    id: int
    state: JobState
    requested_by: str
    created_at: datetime


class BenchmarkDetail(BenchmarkRow):
    """A run on its own page."""

    home: str
    recorded_at: datetime
    """When it was last written down."""
    header: BenchmarkHeader
    levels: tuple[LevelRow, ...]
    """By concurrency."""
    all_points: tuple[Point, ...]
    """By concurrency and repeat."""
    all_prefill: tuple[PrefillPoint, ...]
    """By prompt length and repeat."""
    files: tuple[FileRow, ...]
    """There once it has ended."""
    samples: int
    job: BenchmarkJob | None
    engine_known: bool
    """Whether the console knows its engine, and has a page for it."""


class NumberedSample(LiveSample):
    """A moment of a run."""

    number: int
    """From 0."""


class SamplesAnswer(_Record):
    """Moments of a run, oldest first."""

    state: RecordState
    samples: tuple[NumberedSample, ...]
    """Ask again with the last one's number, while the run is running or as many came as were asked for."""


class WorkloadChoice(_Record):
    """A workload that was measured."""

    key: str
    words: str
    """What it asks, in a few words."""


class BenchmarkChoices(_Record):
    """What filters can be set to: what there is, in order."""

    models: tuple[str, ...] = Field(default=())
    weights: tuple[str, ...] = Field(default=())
    kv_caches: tuple[str, ...] = Field(default=())
    hardware: tuple[str, ...] = Field(default=())
    drivers: tuple[str, ...] = Field(default=())
    tags: tuple[str, ...] = Field(default=())
    workloads: tuple[WorkloadChoice, ...] = Field(default=())
