"""A thread that watches while something is measured: what the engine counts and what GPUs do, about once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from roundhouse.errors import ServeError

from ..measurement.gpus import GpuReading
from ..measurement.processes import look
from ..triton.samples import Sample
from .points import LiveSample
from .subjects import OpenSubject

__all__ = ["Watch"]

_PERIOD_S = 1.0
_SETTLED_S = 3.0
"""How long what has ended may still be told as running: an engine says once a second how it is, and when it becomes idle."""
_SETTLED_POLL_S = 0.1


class Watch:
    """A context manager around what is measured. What it saw is there after it.

    Args:
        subject: whom to watch.
        told: gets each live sample, from the watching thread; what it raises comes out of the context manager.
        stage: what is measured, in words.
        began: when the run began, on the monotonic clock.
        completed: requests that were completed since.
    """

    def __init__(
        self, subject: OpenSubject, told: Callable[[LiveSample], None], *, stage: str, began: float, completed: int
    ) -> None:
        self._subject = subject
        self._told = told
        self._stage = stage
        self._began = began
        self._completed = completed
        self._over = threading.Event()
        self._problem: ServeError | None = None
        self._thread = threading.Thread(target=self._watch, name="benchmark-watch", daemon=True)
        self._before: tuple[float, int] | None = None
        self.samples: list[Sample] = []
        """What the engine counted: one from before, those of the time between, one from after."""
        self.readings: list[tuple[GpuReading, ...]] = []
        """Likewise, of GPUs."""
        self.other_cores: float | None = None

    def __enter__(self) -> Self:
        counts = self._subject.counts
        self.samples = (counts.take() or counts.take())[-1:]  # once more, for what comes after is counted from here
        self.readings.append(self._subject.gpus.read())
        families = self._subject.families
        self._times = None if families is None else look(families)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        families = self._subject.families
        if self._times is not None and families is not None:
            self.other_cores = self._times.others(look(families))
        self.readings.append(self._subject.gpus.read())
        self._over.set()
        self._thread.join()
        if kind is not None:
            return
        self._settle()
        if self._problem is not None:
            raise self._problem

    def _watch(self) -> None:
        try:
            while not self._over.wait(_PERIOD_S):
                self.samples += self._subject.counts.take()
                self.readings.append(self._subject.gpus.read())
                self._told(self._live())
        except ServeError as error:
            self._problem = error

    def _live(self) -> LiveSample:
        latest = self.samples[-1] if self.samples else None
        now = time.monotonic()
        rate = None
        if latest is not None:
            if self._before is not None:
                rate = max(0, latest.generated_tokens - self._before[1]) / (now - self._before[0])
            self._before = now, latest.generated_tokens
        return LiveSample(
            at_s=now - self._began,
            stage=self._stage,
            output_tokens_per_s=rate,
            running=None if latest is None else latest.running,
            waiting=None if latest is None else latest.waiting,
            kv_pages_used=None if latest is None else latest.pages_used,
            completed=self._completed,
        )

    def _settle(self) -> None:
        """Take a sample from after: one in which nothing runs any more."""
        until = time.monotonic() + _SETTLED_S
        while True:
            self.samples += self._subject.counts.take()
            if not self.samples or not (self.samples[-1].running or self.samples[-1].waiting):
                return
            if time.monotonic() >= until:
                return
            time.sleep(_SETTLED_POLL_S)
