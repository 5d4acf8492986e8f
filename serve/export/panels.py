"""What the dashboard shows, row by row: questions to Prometheus, by what they are called in a legend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ROWS", "Panel"]

_OF = '{model=~"$model"}'


@dataclass(frozen=True)
class Panel:
    """One picture: lines over time, or with ``now`` the present values."""

    title: str
    what: str
    unit: str
    series: Mapping[str, str]
    stacked: bool = False
    now: bool = False
    alarm_above: float | None = None
    alarm_below: float | None = None


def _now(metric: str) -> str:
    return f"roundhouse_{metric}{_OF}"


def _rate(metric: str) -> str:
    return f"sum by (model) (rate(roundhouse_{metric}{_OF}[$__rate_interval]))"


def _increase(metric: str) -> str:
    return f"sum by (model) (increase(roundhouse_{metric}{_OF}[$__range]))"


def _quantile(share: float, metric: str) -> str:
    return f"histogram_quantile({share}, sum by (le, model) (rate(roundhouse_{metric}_bucket{_OF}[$__rate_interval])))"


def _mean(metric: str) -> str:
    return f"{_rate(f'{metric}_sum')} / {_rate(f'{metric}_count')}"


def _latency(metric: str) -> dict[str, str]:
    shares = {f"p{share * 100:.0f} {{{{model}}}}": _quantile(share, metric) for share in (0.5, 0.99)}
    return {**shares, "mean {{model}}": _mean(metric)}


ROWS: Mapping[str, tuple[Panel, ...]] = {
    "Fit to serve": (
        Panel(
            "Engine up",
            "1 while the engine process takes requests. Triton alone calls a model ready from its load to its unload.",
            "none",
            {"{{model}}": _now("engine_up")},
            now=True,
            alarm_below=1,
        ),
        Panel(
            "Tokens come out",
            "0 when requests are there and no token has come out for long.",
            "none",
            {"{{model}}": _now("tokens_come_out")},
            now=True,
            alarm_below=1,
        ),
        Panel(
            "Page check alive",
            "0 when the page check is on and steps ran without it: restart the engine.",
            "none",
            {"{{model}}": _now("guard_alive")},
            now=True,
            alarm_below=1,
        ),
        Panel(
            "Last report",
            "How long ago the engine process last reported; it does about once a second.",
            "s",
            {"{{model}}": f"time() - {_now('status_time_seconds')}"},
            now=True,
            alarm_above=30,
        ),
    ),
    "Speed": (
        Panel(
            "Tokens a second",
            "Generated, and prompt tokens that were computed or found in the prefix cache.",
            "none",
            {
                "generated {{model}}": _rate("generated_tokens_total"),
                "prompt {{model}}": _rate("prompt_tokens_total"),
                "of it cached {{model}}": _rate("cached_tokens_total"),
            },
        ),
        Panel("Time to first token", "From a request's arrival at the engine.", "s", _latency("ttft_seconds")),
        Panel("Between tokens", "Between two tokens of one answer.", "s", _latency("inter_token_seconds")),
    ),
    "Load": (
        Panel(
            "Requests",
            "In the batch, and waiting for pages or a place in it.",
            "none",
            {"running {{model}}": _now("requests_running"), "waiting {{model}}": _now("requests_waiting")},
        ),
        Panel(
            "KV pages",
            "Every page is one of these.",
            "none",
            {f"{state} {{{{model}}}}": _now(f"kv_pages_{state}") for state in ("used", "cached", "free", "quarantined")},
            stacked=True,
        ),
        Panel(
            "Steps and preemptions",
            "Steps of the loop a second, and how often a running request gave its pages to another.",
            "none",
            {"steps {{model}}": _rate("steps_total"), "preemptions {{model}}": _rate("preemptions_total")},
        ),
    ),
    "Integrity": (
        Panel(
            "Rows stopped",
            "In the time that is shown: rows with a page of another's tag, or of changed content. Each is an event.",
            "none",
            {
                "tags {{model}}": _increase("tag_mismatches_total"),
                "contents {{model}}": _increase("content_mismatches_total"),
            },
            now=True,
            alarm_above=1,
        ),
        Panel(
            "Checks",
            "Comparisons a second: of tags, a batch at a time, and of pages' contents.",
            "none",
            {"tags {{model}}": _rate("tag_checks_total"), "contents {{model}}": _rate("content_checks_total")},
        ),
        Panel(
            "Pages out of use",
            "Share of pages that are quarantined after a failed check; above 5 % the engine wants a restart.",
            "percentunit",
            {
                "{{model}}": f"{_now('kv_pages_quarantined')} / ({_now('kv_pages_free')} + {_now('kv_pages_used')}"
                f" + {_now('kv_pages_cached')} + {_now('kv_pages_quarantined')})"
            },
            alarm_above=0.05,
        ),
    ),
}
"""Rows by their titles."""
