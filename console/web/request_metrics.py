"""How many requests were answered, and how soon."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

__all__ = ["RequestMetrics"]

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no types; when each was first counted is no number anybody asks for


class RequestMetrics:
    """What one application counts; another in the same process has its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._answers = Counter(
            "roundhouse_console_requests_total", "Answers.", ("method", "route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "roundhouse_console_request_seconds",
            "From a request to the first of its answer.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self.registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
        self._answers.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
