"""What the engine counts, shown on Triton's metrics endpoint."""

from __future__ import annotations

import time
from typing import Any, Literal

from ..engine.status import Status

__all__ = ["ENGINE_UP", "METRICS", "PAGES", "PAGES_QUARANTINED", "STATUS_TIME", "EngineMetrics"]

ENGINE_UP, STATUS_TIME = "roundhouse_engine_up", "roundhouse_status_time_seconds"
PAGES_QUARANTINED = "roundhouse_kv_pages_quarantined"
PAGES = ("roundhouse_kv_pages_free", "roundhouse_kv_pages_used", PAGES_QUARANTINED)
"""Every page is counted by one of these."""

METRICS: tuple[tuple[str, str | None, Literal["counter", "gauge"], str], ...] = (
    (ENGINE_UP, None, "gauge", "1 while the engine process takes requests, 0 while it is down"),
    (STATUS_TIME, None, "gauge", "Unix time of the engine process's last report, which comes about once a second"),
    ("roundhouse_requests_running", "running", "gauge", "Requests in the batch now"),
    ("roundhouse_requests_waiting", "waiting", "gauge", "Requests that wait for pages or a place in the batch"),
    ("roundhouse_kv_pages_free", "pages_free", "gauge", "KV pages that nobody holds"),
    ("roundhouse_kv_pages_used", "pages_used", "gauge", "KV pages in use"),
    (PAGES_QUARANTINED, "pages_quarantined", "gauge", "KV pages out of use after a tag mismatch"),
    ("roundhouse_prompt_tokens_total", "tokens_in", "counter", "Prompt tokens of admitted requests"),
    ("roundhouse_generated_tokens_total", "tokens_out", "counter", "Tokens generated"),
    ("roundhouse_tag_checks_total", "tag_checks", "counter", "Batched page-tag comparisons"),
    ("roundhouse_tag_mismatches_total", "tag_mismatches", "counter", "Requests ended because a page's tag was not theirs"),
)
"""Metric name, field of :class:`roundhouse.serve.engine.status.Status` (None: not the engine's to tell), kind, description."""


class EngineMetrics:
    """Registers the metrics with Triton and keeps them up to date.

    Args:
        triton: the ``triton_python_backend_utils`` module.
        model: the value of the ``model`` label.
    """

    def __init__(self, triton: Any, model: str) -> None:
        kinds = {"counter": triton.MetricFamily.COUNTER, "gauge": triton.MetricFamily.GAUGE}
        self._families = {
            name: triton.MetricFamily(name=name, description=what, kind=kinds[kind]) for name, _, kind, what in METRICS
        }
        self._metrics = {name: family.Metric(labels={"model": model}) for name, family in self._families.items()}
        self._counted: dict[str, int] = {}

    def set_up(self, up: bool) -> None:
        """Show whether the engine process takes requests. Becoming ready counts as a report."""
        if up:
            self._metrics[STATUS_TIME].set(time.time())
        self._metrics[ENGINE_UP].set(int(up))

    def update(self, status: Status) -> None:
        """Show a status report. Counters go on counting when the engine process starts again from 0."""
        self._metrics[STATUS_TIME].set(time.time())
        for name, field, kind, _ in METRICS:
            if field is None:
                continue
            metric = self._metrics[name]
            value: int = getattr(status, field)
            if kind == "gauge":
                metric.set(value)
                continue
            before = self._counted.get(name, 0)
            metric.increment(value - before if value >= before else value)
            self._counted[name] = value
