"""Benchmark runs made up for tests: every number chosen, nothing measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from roundhouse.build.hardware import Hardware
from roundhouse.build.home import Home
from roundhouse.serve.benchmark.points import Percentiles, Point, PrefillPoint
from roundhouse.serve.benchmark.records import Benchmark, BenchmarkHeader
from roundhouse.serve.benchmark.store import POINTS, PREFILL, BenchmarkStore
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.measurement.about import Environment, Subject

__all__ = ["BEGAN", "CPU", "latency", "made_benchmark", "made_header", "made_point", "made_prefill", "stored"]

BEGAN = datetime(2026, 5, 1, 12, tzinfo=UTC)
CPU = Hardware(name="Some CPU", kind="cpu", cores=2, total_memory=2**34, free_memory=2**33)


def latency(p50: float) -> Percentiles:
    """Of requests that hardly differ."""
    return Percentiles(mean=p50, p50=p50, p90=p50 * 1.1, p95=p50 * 1.2, p99=p50 * 1.3, count=8)


def made_point(concurrency: int = 1, repeat: int = 0, speed: float = 100.0, **changes: Any) -> Point:
    """A point with ``speed`` output tokens a second; latencies follow from it."""
    fields: dict[str, Any] = {
        "concurrency": concurrency,
        "repeat": repeat,
        "began_at": BEGAN + timedelta(seconds=repeat),
        "duration_s": 10.0,
        "completed": 8,
        "input_tokens": 2000,
        "output_tokens": round(speed * 10),
        "tokens_from": "usage",
        "ttft": latency(50 / speed),
        "inter_token": latency(concurrency / speed),
        "end_to_end": latency(64 * concurrency / speed),
    }
    return Point(**{**fields, **changes})


def made_prefill(input_tokens: int = 512, repeat: int = 0, speed: float = 1000.0) -> PrefillPoint:
    """A prefill point with ``speed`` prompt tokens a second."""
    return PrefillPoint(
        input_tokens=input_tokens, repeat=repeat, began_at=BEGAN, requests=4, ttft=latency(input_tokens / speed)
    )


def made_header(id_: str = "a" * 12, **changes: Any) -> BenchmarkHeader:
    """A header of a run that was measured here."""
    fields: dict[str, Any] = {
        "id": id_,
        "began_at": BEGAN,
        "driver": "aiperf",
        "driver_version": "0.13.0",
        "subject": Subject(kind="engine", name="smol", model="demo:smollm2", engine_id="14cadfd1bc71d1e6"),
        "workload": Workload(),
        "concurrencies": (1, 8),
        "repeats": 3,
        "seed": 0,
        "command": "roundhouse bench smol",
        "environment": Environment(host="here", hardware=CPU, versions={"torch": "2.9.0"}),
    }
    return BenchmarkHeader(**{**fields, **changes})


def made_benchmark(
    speeds: dict[int, Sequence[float]] | None = None, *, prefill: Sequence[PrefillPoint] = (), **header: Any
) -> Benchmark:
    """A finished run.

    Args:
        speeds: output tokens a second of each repeat, by concurrency.
        prefill: points of it.
        header: keys of the header that differ from :func:`made_header`.
    """
    given = {1: [100.0, 101.0, 99.0], 8: [400.0, 404.0, 396.0]} if speeds is None else speeds
    points = [made_point(level, repeat, speed) for level, each in given.items() for repeat, speed in enumerate(each)]
    about = made_header(**{"concurrencies": tuple(given), "repeats": max(map(len, given.values()), default=1), **header})
    return Benchmark(header=about, state="finished", ended_at=BEGAN, problem=None, points=tuple(points), prefill=tuple(prefill))


def stored(home: Path, *runs: Benchmark) -> BenchmarkStore:
    """A home that holds these runs, finished."""
    store = BenchmarkStore(Home(home))
    for run in runs:
        with store.begin(run.header) as writer:
            writer.add(POINTS, *run.points)
            writer.add(PREFILL, *run.prefill)
    return store
