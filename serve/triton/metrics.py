"""What the engine counts, shown on Triton's metrics endpoint.

Latencies are counted where the tokens are made, by upper bounds. Triton's own histograms can only be fed one observation
at a time, each with a round trip from the stub to the server; one for every token would cost more than sending it. So a
histogram is what Prometheus stores of one: counters ``…_bucket`` with a label ``le``, ``…_sum`` and ``…_count``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Literal

from ..engine.status import Histogram, Status

__all__ = [
    "ENGINE_UP",
    "GUARD_ALIVE",
    "METRICS",
    "PAGES",
    "PAGES_QUARANTINED",
    "STATUS_TIME",
    "TOKENS_COME_OUT",
    "EngineMetrics",
]

ENGINE_UP, STATUS_TIME = "roundhouse_engine_up", "roundhouse_status_time_seconds"
TOKENS_COME_OUT, GUARD_ALIVE = "roundhouse_tokens_come_out", "roundhouse_guard_alive"
PAGES_QUARANTINED = "roundhouse_kv_pages_quarantined"
PAGES = ("roundhouse_kv_pages_free", "roundhouse_kv_pages_used", "roundhouse_kv_pages_cached", PAGES_QUARANTINED)
"""Every page is counted by one of these."""

Kind = Literal["counter", "gauge", "histogram"]

METRICS: tuple[tuple[str, str | None, Kind, str], ...] = (
    (ENGINE_UP, None, "gauge", "1 while the engine process takes requests, 0 while it is down"),
    (TOKENS_COME_OUT, None, "gauge", "0 when requests are there and no token has come out for long, else 1"),
    (GUARD_ALIVE, None, "gauge", "0 when the page check is on and steps ran without it, else 1"),
    (STATUS_TIME, None, "gauge", "Unix time of the engine process's last report, which comes about once a second"),
    ("roundhouse_requests_running", "running", "gauge", "Requests in the batch now"),
    ("roundhouse_requests_waiting", "waiting", "gauge", "Requests that wait for pages or a place in the batch"),
    ("roundhouse_kv_pages_free", "pages_free", "gauge", "KV pages that nobody holds"),
    ("roundhouse_kv_pages_used", "pages_used", "gauge", "KV pages in use by requests"),
    ("roundhouse_kv_pages_cached", "pages_cached", "gauge", "KV pages that only the prefix cache holds, given up when needed"),
    (PAGES_QUARANTINED, "pages_quarantined", "gauge", "KV pages out of use after a page check failed"),
    ("roundhouse_prompt_tokens_total", "tokens_in", "counter", "Prompt tokens of admitted requests"),
    ("roundhouse_cached_tokens_total", "cached_tokens", "counter", "Prompt tokens that were not computed: prefix hits"),
    ("roundhouse_generated_tokens_total", "tokens_out", "counter", "Tokens generated"),
    ("roundhouse_steps_total", "steps", "counter", "Steps of the engine loop that had something to run"),
    ("roundhouse_preemptions_total", "preemptions", "counter", "Times that a running request gave its pages to another"),
    ("roundhouse_tag_checks_total", "tag_checks", "counter", "Batched page-tag comparisons"),
    ("roundhouse_tag_mismatches_total", "tag_mismatches", "counter", "Rows stopped because a page's tag was not theirs"),
    ("roundhouse_content_checks_total", "content_checks", "counter", "Pages whose content was compared (tags+content)"),
    ("roundhouse_content_mismatches_total", "content_mismatches", "counter", "Rows stopped because a page's content changed"),
    ("roundhouse_ttft_seconds", "ttft", "histogram", "From a request's arrival at the engine to its first token"),
    ("roundhouse_inter_token_seconds", "inter_token", "histogram", "Between two tokens of one answer"),
)
"""Metric name, field of :class:`roundhouse.serve.engine.status.Status` (None: not the engine's to tell), kind, description."""


class EngineMetrics:
    """Registers the metrics with Triton and keeps them up to date.

    Args:
        triton: the ``triton_python_backend_utils`` module.
        model: the value of the ``model`` label.
    """

    def __init__(self, triton: Any, model: str) -> None:
        self._triton = triton
        self._model = model
        self._families: dict[str, Any] = {}
        self._metrics: dict[tuple[str, str | None], Any] = {}
        self._shown: dict[tuple[str, str | None], float] = {}
        """What was last set, or reported, so that only changes travel to the server."""
        for name, _, kind, what in METRICS:
            if kind != "histogram":
                self._register(name, kind, what)
        self.set_up(False)

    def set_up(self, up: bool) -> None:
        """Show whether the engine process takes requests. Becoming ready counts as a report."""
        if up:
            self._set(STATUS_TIME, time.time())
        self._set(TOKENS_COME_OUT, 1)
        self._set(GUARD_ALIVE, 1)
        self._set(ENGINE_UP, int(up))

    def update(self, status: Status, *, stuck: bool = False, unguarded: bool = False) -> None:
        """Show a status report. Counters go on counting when the engine process starts again from 0."""
        for name, field, kind, what in METRICS:
            if field is None:
                continue
            value = getattr(status, field)
            if kind == "gauge":
                self._set(name, value)
            elif kind == "counter":
                self._count(name, None, value)
            else:
                self._count_histogram(name, what, value)
        self._set(TOKENS_COME_OUT, int(not stuck))
        self._set(GUARD_ALIVE, int(not unguarded))
        self._set(STATUS_TIME, time.time())

    def close(self) -> None:
        """Let go of them, at the very end: Triton's stub crashes on its way out when any is left."""
        self._metrics.clear()
        self._families.clear()

    def _count_histogram(self, name: str, what: str, value: Histogram) -> None:
        for suffix, bound, count in _series(value):
            if (name + suffix, bound) not in self._metrics:
                self._register(name + suffix, "counter", what, bound)
            self._count(name + suffix, bound, count)

    def _register(self, name: str, kind: Kind, what: str, bound: str | None = None) -> None:
        if name not in self._families:
            families = self._triton.MetricFamily
            kinds = {"counter": families.COUNTER, "gauge": families.GAUGE}
            self._families[name] = families(name=name, description=what, kind=kinds[kind])
        labels = {"model": self._model} if bound is None else {"model": self._model, "le": bound}
        self._metrics[name, bound] = self._families[name].Metric(labels=labels)

    def _set(self, name: str, value: float) -> None:
        if self._shown.get((name, None)) != value:
            self._metrics[name, None].set(value)
            self._shown[name, None] = value

    def _count(self, name: str, bound: str | None, value: float) -> None:
        before = self._shown.get((name, bound), 0)
        more = value - before if value >= before else value
        if more:
            self._metrics[name, bound].increment(more)
        self._shown[name, bound] = value


def _series(histogram: Histogram) -> Iterator[tuple[str, str | None, float]]:
    """The counters of a histogram: suffix of the name, label ``le``, value."""
    counts = list(accumulate(histogram.counts))
    for bound, count in zip([*(f"{bound:g}" for bound in histogram.bounds), "+Inf"], counts, strict=False):
        yield "_bucket", bound, count
    if counts:
        yield "_sum", None, histogram.total
        yield "_count", None, counts[-1]
