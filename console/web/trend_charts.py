"""Series over time, one chart for each metric."""

from __future__ import annotations

from collections.abc import Sequence

from ..benchmarks.trend_records import TREND_METRICS, Trend, TrendMetric, TrendRun
from .charts import Axis, Chart, ChartPoint, Rule, Series, line_chart

__all__ = ["trend_charts"]


def trend_charts(trends: Sequence[Trend]) -> tuple[Chart, ...]:
    """Those metrics of which anything was measured. A pinned baseline is a level across, where there is one series or a few."""
    drawn = []
    for metric, (title, label, unit, described, *_) in TREND_METRICS.items():
        series = [_series(trend, metric, look) for look, trend in enumerate(trends)]
        if not any(_tells(metric, point.y) for each in series for point in each.points):
            continue
        rules = [Rule(level, f"baseline of {trend.number}") for trend, level in _baselines(trends, metric)]
        drawn.append(
            line_chart(f"trend-{metric}", title, described, Axis("Begun", kind="time"), Axis(label, unit), series, rules=rules)
        )
    return tuple(drawn)


def _tells(metric: TrendMetric, value: float | None) -> bool:
    """Whether a value is worth a picture: that no request failed is what everybody expects."""
    return bool(value) if metric == "failed" else value is not None


def _series(trend: Trend, metric: TrendMetric, look: int) -> Series:
    return Series(trend.label, [_point(trend, run, metric) for run in trend.runs], look=look)


def _point(trend: Trend, run: TrendRun, metric: TrendMetric) -> ChartPoint:
    return ChartPoint(
        run.began_at.timestamp(),
        run.value(metric),
        hollow=run.noisy > 0,
        note=", ".join([f"run {run.id}", *["baseline"] * run.is_baseline, *["noisy"] * bool(run.noisy)]),
        flag="worse than the baseline" if run.id == trend.newest.id and trend.is_worse(metric) else "",
    )


def _baselines(trends: Sequence[Trend], metric: TrendMetric) -> list[tuple[Trend, float]]:
    found = ((trend, trend.baseline.value(metric)) for trend in trends if trend.baseline is not None)
    return [(trend, level) for trend, level in found if level is not None]
