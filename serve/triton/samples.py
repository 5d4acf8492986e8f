"""What an engine counts, read from Triton's metrics."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

from . import metrics as names

__all__ = ["Sample", "sample_of"]

_LINE = re.compile(r'^(roundhouse_\w+)\{model="([^"]*)"\} (\S+)$', re.MULTILINE)


class Sample(BaseModel):
    """Gauges of a moment, and counters since the engine process began: rates are differences of two samples.

    A counter that is smaller than before says that the engine process was started again.
    """

    model_config = ConfigDict(frozen=True)

    running: int
    waiting: int
    pages_free: int
    pages_used: int
    pages_cached: int
    pages_quarantined: int
    prompt_tokens: int
    generated_tokens: int
    cached_tokens: int
    steps: int
    preemptions: int
    tag_checks: int
    tag_mismatches: int
    content_checks: int
    content_mismatches: int
    ttft_sum: float = 0.0
    """Seconds from arrival to first token, of all requests."""
    ttft_count: int = 0
    guard_alive: bool
    tokens_come_out: bool

    @property
    def pages(self) -> int:
        """Of the whole pool."""
        return self.pages_free + self.pages_used + self.pages_cached + self.pages_quarantined

    @property
    def pages_taken(self) -> int:
        """What no other request can have now: in use, or quarantined. A cached page is given to whoever needs one."""
        return self.pages_used + self.pages_quarantined

    @property
    def checks(self) -> int:
        """Of pages, of every kind."""
        return self.tag_checks + self.content_checks

    @property
    def mismatches(self) -> int:
        """Rows that a check stopped."""
        return self.tag_mismatches + self.content_mismatches


_METRICS = {
    "running": "roundhouse_requests_running",
    "waiting": "roundhouse_requests_waiting",
    "pages_free": "roundhouse_kv_pages_free",
    "pages_used": "roundhouse_kv_pages_used",
    "pages_cached": "roundhouse_kv_pages_cached",
    "pages_quarantined": names.PAGES_QUARANTINED,
    "prompt_tokens": "roundhouse_prompt_tokens_total",
    "generated_tokens": "roundhouse_generated_tokens_total",
    "cached_tokens": "roundhouse_cached_tokens_total",
    "steps": "roundhouse_steps_total",
    "preemptions": "roundhouse_preemptions_total",
    "tag_checks": "roundhouse_tag_checks_total",
    "tag_mismatches": "roundhouse_tag_mismatches_total",
    "content_checks": "roundhouse_content_checks_total",
    "content_mismatches": "roundhouse_content_mismatches_total",
    "ttft_sum": "roundhouse_ttft_seconds_sum",
    "ttft_count": "roundhouse_ttft_seconds_count",
    "guard_alive": names.GUARD_ALIVE,
    "tokens_come_out": names.TOKENS_COME_OUT,
}


def sample_of(metrics: str, model: str) -> Sample | None:
    """What the metrics say of a model; None when they do not know it, or are no such metrics.

    Args:
        metrics: in Prometheus' text form.
        model: its name.
    """
    try:
        found = {name: float(value) for name, labelled, value in _LINE.findall(metrics) if labelled == model}
        if names.ENGINE_UP not in found:
            return None
        return Sample.model_validate({field: found.get(name, 0) for field, name in _METRICS.items()})
    except ValueError:
        return None
