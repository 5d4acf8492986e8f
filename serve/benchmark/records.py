"""A benchmark run as it is written down: schema 1, documented in docs/benchmark-schema.md.

A run is a header, points and prefill points (:mod:`~roundhouse.serve.benchmark.points`), and live samples.
"""

from __future__ import annotations

from typing import Literal

from ..history.moments import Moment
from ..history.reader import RecordState
from ..history.record import Record
from ..measurement.about import Environment, Subject
from .points import Point, PrefillPoint
from .workload import Workload

__all__ = ["SCHEMA_VERSION", "Benchmark", "BenchmarkHeader", "Driver"]

SCHEMA_VERSION: Literal[1] = 1

Driver = Literal["aiperf", "loop", "vllm"]
"""Who made the load: aiperf over HTTP; ``loop``: the bare engine loop in a process of the benchmark's; ``vllm``: vLLM's serve
benchmark, whose result files can be imported."""


class BenchmarkHeader(Record):
    """``header.json`` of a run."""

    schema_version: Literal[1] = SCHEMA_VERSION
    id: str
    began_at: Moment
    driver: Driver
    driver_version: str | None
    imported_from: str | None = None
    """Name of the file that it was read from, of the first where there were several; None when it was measured here."""
    imported_sha256: tuple[str, ...] = ()
    """Of each file that it was read from, so that none is imported twice."""
    subject: Subject
    workload: Workload
    concurrencies: tuple[int, ...]
    repeats: int
    prefill_lengths: tuple[int, ...] = ()
    seed: int | None
    """None where an imported file does not say."""
    command: str
    """Measures it again. Holds no secrets. Empty where an imported file does not say."""
    environment: Environment
    session: str | None = None
    """Runs that were measured by turns, repeat by repeat, share one."""

    @property
    def ran_on(self) -> str | None:
        """What it ran on in words, the same for every list, chart and series: None where nothing is known.

        The device, with how many of them the recipe takes where that is more than one; of a server of which nobody knows it
        what was said of it, else which GPUs the machine has: it lists all of them, so how many were used is not said.
        """
        hardware, devices = self.environment.hardware, self.subject.devices
        if hardware is not None:
            return f"{devices}×{hardware.name}" if hardware.kind == "cuda" and (devices or 1) > 1 else hardware.name
        return self.subject.server or ", ".join(dict.fromkeys(self.environment.gpus)) or None


class Benchmark(Record):
    """A run as it is read."""

    header: BenchmarkHeader
    state: RecordState
    ended_at: Moment | None
    problem: str | None
    points: tuple[Point, ...]
    prefill: tuple[PrefillPoint, ...]

    @property
    def id(self) -> str:
        """12 hex digits."""
        return self.header.id
