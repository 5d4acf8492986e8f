"""What the engine counts, shown on Triton's metrics endpoint."""

from __future__ import annotations

from typing import Any, Literal

from ..engine.status import Status

__all__ = ["METRICS", "EngineMetrics"]

METRICS: tuple[tuple[str, str, Literal["counter", "gauge"], str], ...] = (
    ("roundhouse_requests_running", "running", "gauge", "Requests in the batch now"),
    ("roundhouse_requests_waiting", "waiting", "gauge", "Requests that wait for pages or a place in the batch"),
    ("roundhouse_kv_pages_free", "pages_free", "gauge", "KV pages that nobody holds"),
    ("roundhouse_kv_pages_used", "pages_used", "gauge", "KV pages in use"),
    ("roundhouse_kv_pages_quarantined", "pages_quarantined", "gauge", "KV pages out of use after a tag mismatch"),
    ("roundhouse_prompt_tokens_total", "tokens_in", "counter", "Prompt tokens of admitted requests"),
    ("roundhouse_generated_tokens_total", "tokens_out", "counter", "Tokens generated"),
    ("roundhouse_tag_checks_total", "tag_checks", "counter", "Batched page-tag comparisons"),
    ("roundhouse_tag_mismatches_total", "tag_mismatches", "counter", "Requests ended because a page's tag was not theirs"),
)
"""Metric name, field of :class:`roundhouse.serve.engine.status.Status`, kind, description."""


class EngineMetrics:
    """Registers the metrics with Triton and keeps them up to date.

    Args:
        triton: the ``triton_python_backend_utils`` module.
        model: the value of the ``model`` label.
    """

    def __init__(self, triton: Any, model: str) -> None:
        kinds = {"counter": triton.MetricFamily.COUNTER, "gauge": triton.MetricFamily.GAUGE}
        self._families = [triton.MetricFamily(name=name, description=what, kind=kinds[kind]) for name, _, kind, what in METRICS]
        self._metrics = [family.Metric(labels={"model": model}) for family in self._families]
        self._counted: dict[str, int] = {}

    def update(self, status: Status) -> None:
        """Show a status report. Counters go on counting when the engine process starts again from 0."""
        for metric, (name, field, kind, _) in zip(self._metrics, METRICS, strict=True):
            value: int = getattr(status, field)
            if kind == "gauge":
                metric.set(value)
                continue
            before = self._counted.get(name, 0)
            metric.increment(value - before if value >= before else value)
            self._counted[name] = value
