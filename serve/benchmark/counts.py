"""What an engine counts while it is measured: where that is read, and what it sums up to."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Protocol

from ..engine.status import Status
from ..measurement.endpoints import is_here
from ..triton.samples import Sample, sample_of
from .points import EngineCounts

__all__ = ["NO_COUNTS", "CountsSource", "TritonCounts", "engine_counts", "pool_pages", "sample_of_status"]

_TIMEOUT_S = 3.0
_TOLD_WITHIN_S = 15.0
_ASKED_EVERY_S = 0.5
_COUNTERS = (
    "prompt_tokens",
    "cached_tokens",
    "steps",
    "preemptions",
    "tag_checks",
    "tag_mismatches",
    "content_checks",
    "content_mismatches",
)


class CountsSource(Protocol):
    """Where an engine tells what it counts."""

    def take(self) -> list[Sample]:
        """What it told since it was asked last, the oldest first; empty when it tells nothing. May be slow, never raises."""
        ...


class _NoCounts:
    def take(self) -> list[Sample]:
        return []


NO_COUNTS: CountsSource = _NoCounts()


class TritonCounts:
    """An engine behind Triton.

    Args:
        url: of Triton's metrics.
        model: its name there.
    """

    def __init__(self, url: str, model: str) -> None:
        self._url = url
        self._model = model

    def take(self) -> list[Sample]:
        import httpx

        try:
            answer = httpx.get(self._url, timeout=_TIMEOUT_S, trust_env=not is_here(self._url))
        except (httpx.HTTPError, httpx.InvalidURL):
            return []
        found = sample_of(answer.text, self._model)
        return [] if found is None else [found]


def pool_pages(counts: CountsSource, stop: threading.Event) -> int | None:
    """How many pages an engine's pool has, asked until it tells.

    An engine that has just become ready has not reported yet, and a busy server may not answer the first time.

    Args:
        counts: where it tells.
        stop: gives up when it is set.

    Returns:
        None when it told nothing for a while.
    """
    until = time.monotonic() + (0.0 if counts is NO_COUNTS else _TOLD_WITHIN_S)
    while True:
        told = [sample.pages for sample in counts.take() if sample.pages]
        if told:
            return told[-1]
        if time.monotonic() >= until or stop.wait(_ASKED_EVERY_S):
            return None


def sample_of_status(status: Status) -> Sample:
    """What the engine loop says of itself, in the words of the metrics."""
    return Sample(
        running=status.running,
        waiting=status.waiting,
        pages_free=status.pages_free,
        pages_used=status.pages_used,
        pages_cached=status.pages_cached,
        pages_quarantined=status.pages_quarantined,
        prompt_tokens=status.tokens_in,
        generated_tokens=status.tokens_out,
        cached_tokens=status.cached_tokens,
        steps=status.steps,
        preemptions=status.preemptions,
        tag_checks=status.tag_checks,
        tag_mismatches=status.tag_mismatches,
        content_checks=status.content_checks,
        content_mismatches=status.content_mismatches,
        ttft_sum=status.ttft.total,
        ttft_count=sum(status.ttft.counts),
        guard_alive=True,
        tokens_come_out=True,
    )


def engine_counts(samples: Sequence[Sample]) -> EngineCounts | None:
    """Sum up the samples of a point, the oldest first: one from before its first request, one from after its last.

    Pages are averaged over the samples in which something ran: a driver takes its time before and after.

    Returns:
        None of fewer than two samples.
    """
    if len(samples) < 2:
        return None
    first, last = samples[0], samples[-1]
    busy = [each for each in samples if each.running or each.waiting] or list(samples)
    counted = {name: _growth(getattr(first, name), getattr(last, name)) for name in _COUNTERS}
    return EngineCounts(
        kv_pages=last.pages,
        kv_pages_used_mean=sum(each.pages_used for each in busy) / len(busy),
        kv_pages_used_most=max(each.pages_used for each in busy),
        running_most=max(each.running for each in samples),
        waiting_most=max(each.waiting for each in samples),
        **counted,
    )


def _growth(before: int, after: int) -> int:
    """How much a counter grew; one that is smaller than before began anew with a new engine process."""
    return after - before if after >= before else after
