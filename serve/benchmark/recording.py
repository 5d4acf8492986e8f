"""One run: what is measured of one subject, written down as it comes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from roundhouse.errors import ServeError

from ..history import RecordWriter
from ..measurement.draws import draw
from ..measurement.watcher import Watcher
from .counts import engine_counts
from .driver import Measured, PointWish
from .gpu_use import gpu_use
from .measuring import point_of, prefill_point_of
from .points import LiveSample, Point, PrefillPoint
from .store import POINTS, PREFILL, SAMPLES
from .subjects import OpenSubject
from .watch import Watch
from .wish import BenchmarkWish
from .workload import Workload

__all__ = ["Run"]

_PREFILL_REQUESTS = 3
"""Prompts of one length in one repeat."""
_WARM_REQUESTS = 4
_WARM_TOKENS = 4


class Run:
    """Measures one subject, and writes each point as soon as it is there.

    Args:
        wish: what to measure.
        subject: ready.
        writer: of the run's record.
        watcher: hears how it goes.
        name: what to call the subject.
    """

    def __init__(self, wish: BenchmarkWish, subject: OpenSubject, writer: RecordWriter, watcher: Watcher, *, name: str) -> None:
        self.wish = wish
        self.name = name
        self.subject = subject
        self.writer = writer
        self._watcher = watcher
        self._began = time.monotonic()
        self._completed = 0

    def warm_up(self, stop: threading.Event) -> None:
        """Ask a little, and count nothing of it.

        Raises:
            ServeError: nothing was answered: what follows would be no better.
            BenchmarkStoppedError: ``stop`` was set.
        """
        short = self.wish.workload.model_copy(update={"cancel_share": 0.0, "output_spread": 0})
        short = short.model_copy(update={"output_tokens": min(_WARM_TOKENS, short.output_tokens)})
        concurrency = min(max(self.wish.concurrencies), _WARM_REQUESTS)
        measured = self._measure(short, concurrency, concurrency, self._seed("warm-up"), stop)
        if not any(each.outcome == "completed" for each in measured.requests):
            kinds = Counter(each.error or "unknown" for each in measured.requests)
            told = ", ".join(f"{count}× {kind}" for kind, count in kinds.items()) or "nothing was sent"
            raise ServeError(f"{self.name} answered no request of the warm-up: {told}")

    def measure_point(self, concurrency: int, repeat: int, stop: threading.Event) -> None:
        """Measure one concurrency once.

        Raises:
            ServeError: it could not be measured, or not be written.
            BenchmarkStoppedError: ``stop`` was set.
        """
        workload = self.wish.workload
        seed = self._seed(concurrency, repeat)
        began_at = datetime.now(UTC)
        with self._watched(f"{concurrency} at once, repeat {repeat + 1}") as watch:
            measured = self._measure(workload, concurrency, workload.requests(concurrency), seed, stop)
        try:
            point = point_of(
                measured.requests,
                concurrency=concurrency,
                repeat=repeat,
                began_at=began_at,
                tokens_from=measured.tokens_from,
                engine=engine_counts(watch.samples),
                gpus=gpu_use(self.subject.gpus.names, watch.readings),
                other_cores=watch.other_cores,
            )
        except ValueError as error:
            raise ServeError(f"the driver measured nothing at {concurrency} at once: {error}") from None
        self.writer.add(POINTS, point)
        self._completed += point.completed
        self._keep(measured, f"c{concurrency}-r{repeat}")
        self._watcher.say(f"{self.name}, {_point_words(point)}")
        self.subject.require_running()

    def measure_prefill(self, length: int, repeat: int, stop: threading.Event) -> None:
        """Measure prompts of one length once, one at a time, each with one token of answer.

        Raises:
            ServeError: it could not be measured, or not be written.
            BenchmarkStoppedError: ``stop`` was set.
        """
        workload = Workload(name="prefill", input_tokens=length, output_tokens=1)
        seed = self._seed("prefill", length, repeat)
        began_at = datetime.now(UTC)
        with self._watched(f"prefill of {length}, repeat {repeat + 1}") as watch:
            measured = self._measure(workload, 1, _PREFILL_REQUESTS, seed, stop)
        try:
            point = prefill_point_of(
                measured.requests,
                input_tokens=length,
                repeat=repeat,
                began_at=began_at,
                engine=engine_counts(watch.samples),
                gpus=gpu_use(self.subject.gpus.names, watch.readings),
                other_cores=watch.other_cores,
            )
        except ValueError as error:
            raise ServeError(f"the driver measured nothing of prefill of {length}: {error}") from None
        self.writer.add(PREFILL, point)
        self._completed += point.requests
        self._keep(measured, f"prefill{length}-r{repeat}")
        self._watcher.say(f"{self.name}, {_prefill_words(point)}")
        self.subject.require_running()

    def _measure(self, workload: Workload, concurrency: int, requests: int, seed: int, stop: threading.Event) -> Measured:
        wish = PointWish(
            workload=workload,
            concurrency=concurrency,
            requests=requests,
            seed=seed,
            timeout_s=self.wish.request_timeout_s,
        )
        return self.subject.driver.measure(wish, stop)

    def _seed(self, *purpose: object) -> int:
        """31 bits that depend on the wish's seed and on what is measured, and not on who is measured."""
        return draw(self.wish.seed, *purpose).getrandbits(31)

    def _watched(self, stage: str) -> Watch:
        self._watcher.stage("measure", f"{self.name}: {stage}")
        return Watch(self.subject, self._live, stage=stage, began=self._began, completed=self._completed)

    def _live(self, sample: LiveSample) -> None:
        self.writer.add(SAMPLES, sample, durable=False)

    def _keep(self, measured: Measured, point: str) -> None:
        for name, path in measured.files:
            self.writer.raw.keep(f"{point}-{name}", path)


def _point_words(point: Point) -> str:
    told = f"{point.concurrency} at once, repeat {point.repeat + 1}: {point.output_tokens_per_s:,.1f} tokens/s"
    if point.ttft is not None:
        told += f", first token {point.ttft.p50:.3f} s"
    if point.inter_token is not None:
        told += f", then one each {point.inter_token.p50 * 1000:.1f} ms"
    told += _failed_words(point.failed)
    if point.cancelled:
        told += f", {point.cancelled} cancelled"
    return told + _noisy_words(point.noisy, point.other_cores)


def _prefill_words(point: PrefillPoint) -> str:
    told = f"prefill of {point.input_tokens}, repeat {point.repeat + 1}: "
    if point.tokens_per_s is None or point.ttft is None:
        told += "no prompt was answered"
    else:
        told += f"{point.tokens_per_s:,.0f} tokens/s, {point.ttft.p50:.3f} s"
    return told + _failed_words(point.failed) + _noisy_words(point.noisy, point.other_cores)


def _failed_words(failed: Mapping[str, int]) -> str:
    return ", failed: " + ", ".join(f"{count}× {kind}" for kind, count in failed.items()) if failed else ""


def _noisy_words(noisy: bool, cores: float | None) -> str:
    return f"; noisy: others took {cores:.2f} cores" if noisy and cores is not None else ""
