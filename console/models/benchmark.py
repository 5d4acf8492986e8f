"""Benchmark runs and evaluations, as workers find them in their homes: the folders are the truth, these rows an index."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from ..database.base import Base

__all__ = [
    "BenchmarkLevel",
    "BenchmarkPoint",
    "BenchmarkPrefill",
    "BenchmarkRun",
    "BenchmarkSample",
    "BenchmarkTag",
    "EvaluationRun",
    "EvaluationScore",
    "RecordFile",
]

_STATES = "state IN ('running', 'finished', 'failed', 'cancelled', 'interrupted')"


class BenchmarkRun(Base):
    """A :class:`roundhouse.serve.benchmark.records.Benchmark`, with what lists sort and filter by."""

    __tablename__ = "benchmark"
    __table_args__ = (
        CheckConstraint(_STATES, name="state"),
        Index("ix_benchmark_series_began_at", "series", "began_at"),
        Index("ix_benchmark_deleted_at_began_at", "deleted_at", "began_at"),
        Index("ix_benchmark_host_home", "host", "home"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    """12 hex digits; its folder's name."""
    state: Mapped[str]
    problem: Mapped[str | None]
    host: Mapped[str]
    home: Mapped[str]
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id", ondelete="SET NULL"), index=True)
    """The job that measured it; None where the command line did."""
    engine_id: Mapped[str | None] = mapped_column(index=True)
    name: Mapped[str]
    """The engine's, or the model's as an endpoint calls it."""
    model: Mapped[str]
    target: Mapped[str | None]
    role: Mapped[str | None]
    weights: Mapped[str | None]
    kv_cache: Mapped[str | None]
    guard: Mapped[str | None]
    driver: Mapped[str]
    is_imported: Mapped[bool]
    workload_key: Mapped[str]
    """Equal where the same was asked."""
    workload: Mapped[str]
    """In a few words."""
    hardware: Mapped[str]
    """The device's name, or who serves an endpoint elsewhere."""
    series: Mapped[str]
    """A hash of everything that a comparison over time must keep: model, recipe, hardware, workload, driver."""
    concurrencies: Mapped[list[int]]
    repeats: Mapped[int]
    tokens_per_s_most: Mapped[float | None]
    """Output tokens a second at the concurrency where they are most: the median over repeats."""
    concurrency_most: Mapped[int | None]
    tokens_per_s_alone: Mapped[float | None]
    """The same at concurrency 1."""
    prefill_tokens_per_s: Mapped[float | None]
    """The most of its prompt lengths."""
    points: Mapped[int]
    samples: Mapped[int]
    failed: Mapped[int]
    """Requests, of all points."""
    noisy: Mapped[int]
    """Points that were disturbed."""
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    recorded_at: Mapped[datetime]
    note: Mapped[str] = mapped_column(default="")
    is_baseline: Mapped[bool] = mapped_column(default=False)
    """Pinned: the newest pinned run of a series is what later ones are compared with."""
    sought: Mapped[str]
    """What a search looks through, in small letters."""
    deleted_at: Mapped[datetime | None]
    """Deleted here; the row stays until the worker of its home has deleted the folder."""
    header: Mapped[dict[str, Any]]
    """``header.json``. The last column: it is long, and SQLite walks through it to reach what stands behind it."""


class BenchmarkTag(Base):
    """A word that somebody put on a run."""

    __tablename__ = "benchmark_tag"

    benchmark_id: Mapped[str] = mapped_column(ForeignKey("benchmark.id", ondelete="CASCADE"), primary_key=True)
    tag: Mapped[str] = mapped_column(primary_key=True, index=True)


class BenchmarkLevel(Base):
    """All repeats at one concurrency: medians, with the least and the most of output tokens a second."""

    __tablename__ = "benchmark_level"

    benchmark_id: Mapped[str] = mapped_column(ForeignKey("benchmark.id", ondelete="CASCADE"), primary_key=True)
    concurrency: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    repeats: Mapped[int]
    output_tokens_per_s: Mapped[float]
    output_tokens_per_s_least: Mapped[float]
    output_tokens_per_s_most: Mapped[float]
    input_tokens_per_s: Mapped[float]
    requests_per_s: Mapped[float]
    ttft_p50: Mapped[float | None]
    ttft_p99: Mapped[float | None]
    inter_token_p50: Mapped[float | None]
    inter_token_p99: Mapped[float | None]
    end_to_end_p50: Mapped[float | None]
    end_to_end_p99: Mapped[float | None]
    failed: Mapped[int]
    noisy: Mapped[int]


class BenchmarkPoint(Base):
    """One concurrency in one repeat."""

    __tablename__ = "benchmark_point"

    benchmark_id: Mapped[str] = mapped_column(ForeignKey("benchmark.id", ondelete="CASCADE"), primary_key=True)
    concurrency: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    repeat: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    output_tokens_per_s: Mapped[float]
    ttft_p50: Mapped[float | None]
    inter_token_p50: Mapped[float | None]
    end_to_end_p50: Mapped[float | None]
    record: Mapped[dict[str, Any]]
    """:class:`roundhouse.serve.benchmark.points.Point`"""


class BenchmarkPrefill(Base):
    """One prompt length in one repeat."""

    __tablename__ = "benchmark_prefill"

    benchmark_id: Mapped[str] = mapped_column(ForeignKey("benchmark.id", ondelete="CASCADE"), primary_key=True)
    input_tokens: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    repeat: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    tokens_per_s: Mapped[float]
    record: Mapped[dict[str, Any]]
    """:class:`roundhouse.serve.benchmark.points.PrefillPoint`"""


class BenchmarkSample(Base):
    """A moment of a run: :class:`roundhouse.serve.benchmark.points.LiveSample`."""

    __tablename__ = "benchmark_sample"

    benchmark_id: Mapped[str] = mapped_column(ForeignKey("benchmark.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """From 0."""
    at_s: Mapped[float]
    stage: Mapped[str]
    output_tokens_per_s: Mapped[float | None]
    running: Mapped[int | None]
    waiting: Mapped[int | None]
    kv_pages_used: Mapped[int | None]
    completed: Mapped[int | None]


class RecordFile(Base):
    """A raw file of a benchmark run or an evaluation, compressed with gzip, as its folder has it."""

    __tablename__ = "record_file"

    record_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    """With folders, without ``.gz``."""
    size: Mapped[int] = mapped_column(BigInteger)
    """Bytes, compressed."""
    content: Mapped[bytes]


class EvaluationRun(Base):
    """A :class:`roundhouse.serve.accuracy.records.Evaluation`."""

    __tablename__ = "evaluation"
    __table_args__ = (
        CheckConstraint(_STATES, name="state"),
        CheckConstraint("gate IN ('passed', 'failed', 'not measured')", name="gate"),
        Index("ix_evaluation_deleted_at_began_at", "deleted_at", "began_at"),
        Index("ix_evaluation_host_home", "host", "home"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str]
    problem: Mapped[str | None]
    host: Mapped[str]
    home: Mapped[str]
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id", ondelete="SET NULL"), index=True)
    engine_id: Mapped[str | None] = mapped_column(index=True)
    name: Mapped[str]
    model: Mapped[str]
    base_name: Mapped[str | None]
    """What it was compared with."""
    gate: Mapped[str]
    gate_points: Mapped[float]
    gate_reasons: Mapped[list[str]]
    worst_difference: Mapped[float | None]
    """Points of 100 of the task that is furthest down against the base; negative is worse."""
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    recorded_at: Mapped[datetime]
    sought: Mapped[str]
    """What a search looks through, in small letters."""
    deleted_at: Mapped[datetime | None]
    header: Mapped[dict[str, Any]]
    """``header.json``."""


class EvaluationScore(Base):
    """What one task came to."""

    __tablename__ = "evaluation_score"

    evaluation_id: Mapped[str] = mapped_column(ForeignKey("evaluation.id", ondelete="CASCADE"), primary_key=True)
    task: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int]
    value: Mapped[float]
    stderr: Mapped[float | None]
    difference: Mapped[float | None]
    record: Mapped[dict[str, Any]]
    """:class:`roundhouse.serve.accuracy.records.TaskScore`"""
