"""Watching benchmarks in tests, and subjects that answer as they are told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from roundhouse.serve.benchmark.counts import NO_COUNTS
from roundhouse.serve.benchmark.driver import Measured, PointWish
from roundhouse.serve.benchmark.measuring import MeasuredRequest
from roundhouse.serve.benchmark.records import Driver
from roundhouse.serve.benchmark.subjects import OpenSubject
from roundhouse.serve.measurement.about import Subject
from roundhouse.serve.measurement.gpus import NO_GPUS

__all__ = ["NotingWatcher", "ScriptedDriver", "answered", "scripted_subject"]


class NotingWatcher:
    """Notes what it hears, and stops the benchmark when a line says so."""

    def __init__(self, stop_at: str | None = None) -> None:
        self.stopping = threading.Event()
        self.folders: list[Path] = []
        self.stages: list[tuple[str, str]] = []
        self.fractions: list[float] = []
        self.lines: list[str] = []
        self._stop_at = stop_at

    def began(self, folder: Path) -> None:
        self.folders.append(folder)

    def stage(self, name: str, what: str) -> None:
        self.stages.append((name, what))

    def progress(self, fraction: float) -> None:
        self.fractions.append(fraction)

    def say(self, line: str) -> None:
        self.lines.append(line)
        if self._stop_at is not None and self._stop_at in line:
            self.stopping.set()


class ScriptedDriver:
    """Answers every request after a tenth of a second of its own clock, in tokens of a hundredth.

    Args:
        name: of whom it asks.
        asked: notes who was asked what.
        before: called before each point; what it raises is what goes wrong.
    """

    name: Driver = "aiperf"
    version: str | None = "scripted"

    def __init__(
        self, name: str, asked: list[tuple[str, PointWish]], before: Callable[[PointWish], None] = lambda wish: None
    ) -> None:
        self._name = name
        self._asked = asked
        self._before = before

    def measure(self, wish: PointWish, stop: threading.Event) -> Measured:
        self._asked.append((self._name, wish))
        self._before(wish)
        return Measured(answered(wish.requests, wish.workload.input_tokens, wish.workload.output_tokens), "usage")


def answered(count: int, input_tokens: int = 16, output_tokens: int = 8) -> Sequence[MeasuredRequest]:
    first = 0.1
    ended = first + (output_tokens - 1) / 100
    return [MeasuredRequest("completed", float(n), n + ended, n + first, input_tokens, output_tokens) for n in range(count)]


def scripted_subject(name: str, driver: ScriptedDriver, require_running: Callable[[], None] = lambda: None) -> OpenSubject:
    return OpenSubject(
        Subject(kind="endpoint", name=name, model=name, url="http://127.0.0.1:1/v1"),
        driver,
        NO_COUNTS,
        NO_GPUS,
        here=False,
        families=None,
        require_running=require_running,
    )
