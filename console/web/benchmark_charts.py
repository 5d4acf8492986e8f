"""The pictures of one benchmark run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..benchmarks.shown import LatencyShown, LevelShown, PrefillShown
from .charts import Axis, Chart, ChartPoint, Series, line_chart

__all__ = ["run_charts"]

_CONCURRENCY = Axis("Concurrency", kind="log2")
_OUTPUT = Axis("Output", "tokens/s")
_LATENCIES: tuple[tuple[str, str, Callable[[LevelShown], LatencyShown | None]], ...] = (
    ("ttft", "Time to the first token", lambda level: level.ttft),
    ("inter-token", "Time between tokens", lambda level: level.inter_token),
    ("end-to-end", "Time of a whole request", lambda level: level.end_to_end),
)
_PERCENTILES = ("p50", "p90", "p99")


def run_charts(levels: Sequence[LevelShown], prefill: Sequence[PrefillShown]) -> tuple[Chart, ...]:
    """Throughput, the trade-off, latencies and prefill; what was not measured is left out."""
    charts = [_throughput(levels), _trade_off(levels), *(_latency(*each, levels) for each in _LATENCIES), _prefill(prefill)]
    return tuple(chart for chart in charts if not chart.is_empty)


def _throughput(levels: Sequence[LevelShown]) -> Chart:
    points = [
        ChartPoint(
            level.concurrency,
            level.output_tokens_per_s,
            *_interval(level.repeats, level.output_least, level.output_most),
            note=_noise(level.noisy, level.repeats),
            hollow=level.noisy > 0,
        )
        for level in levels
    ]
    described = "All requests together, the median over repeats; the band reaches from the least to the most."
    return line_chart(
        "throughput", "Throughput against concurrency", described, _CONCURRENCY, _OUTPUT, [Series("Output", points)]
    )


def _trade_off(levels: Sequence[LevelShown]) -> Chart:
    points = [
        ChartPoint(
            level.inter_token.p50 * 1000, level.output_tokens_per_s, label=str(level.concurrency), hollow=level.noisy > 0
        )
        for level in levels
        if level.inter_token is not None
    ]
    described = "Each mark is a concurrency: further up is more for all, further left is faster for each."
    x = Axis("Time between tokens, p50", "ms")
    return line_chart("trade-off", "Trade-off", described, x, _OUTPUT, [Series("Concurrency", points)])


def _latency(id_: str, title: str, of: Callable[[LevelShown], LatencyShown | None], levels: Sequence[LevelShown]) -> Chart:
    series = []
    for look, name in enumerate(_PERCENTILES):
        points = []
        for level in levels:
            found = of(level)
            value = None if found is None else getattr(found, name)
            around: tuple[float | None, float | None] = (None, None)
            if found is not None and name == "p50":
                around = _interval(level.repeats, found.p50_least * 1000, found.p50_most * 1000)
            points.append(
                ChartPoint(level.concurrency, None if value is None else value * 1000, *around, hollow=level.noisy > 0)
            )
        series.append(Series(name, points, look=look))
    known = [each for each in series if any(point.y is not None for point in each.points)]
    described = "Percentiles over requests, the median over repeats; lower is better."
    return line_chart(id_, title, described, _CONCURRENCY, Axis(title, "ms"), known)


def _prefill(prefill: Sequence[PrefillShown]) -> Chart:
    points = [
        ChartPoint(
            each.input_tokens,
            each.tokens_per_s,
            *_interval(each.repeats, each.least, each.most),
            note=_noise(each.noisy, each.repeats),
            hollow=each.noisy > 0,
        )
        for each in prefill
        if each.tokens_per_s is not None and each.least is not None and each.most is not None
    ]
    described = "One prompt at a time, its tokens over the time to the first token of the answer."
    x, y = Axis("Prompt length", "tokens", kind="log2"), Axis("Prefill", "tokens/s")
    return line_chart("prefill", "Prefill by prompt length", described, x, y, [Series("Prefill", points)])


def _interval(repeats: int, least: float, most: float) -> tuple[float | None, float | None]:
    """One measurement has no interval."""
    return (least, most) if repeats > 1 else (None, None)


def _noise(noisy: int, of: int) -> str:
    return f"{noisy} of {of} noisy" if noisy else ""
