"""Runs overlaid: throughput and latency against concurrency, and one against the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..benchmarks.compare_records import Comparison, LevelBeside, RunBeside
from .charts import Axis, Chart, ChartPoint, Series, line_chart

__all__ = ["MOST_DRAWN", "compare_charts"]

MOST_DRAWN = 12
"""Runs on one chart: more lines than so many cannot be told apart."""
_CONCURRENCY = Axis("Concurrency", kind="log2")
_OUTPUT = Axis("Output", "tokens/s")

Reading = Callable[[LevelBeside], float | None]


def compare_charts(comparison: Comparison) -> tuple[Chart, ...]:
    """Throughput, time to the first token, time between tokens, and the trade-off. The base is always drawn."""
    base = comparison.base
    others = [run for run in comparison.runs if not run.is_base and run.levels]
    drawn = sorted([*([base] if base and base.levels else []), *others[: MOST_DRAWN - 1]], key=lambda run: run.number)
    if not drawn:
        return ()
    return (
        line_chart(
            "compare-throughput",
            "Throughput against concurrency",
            "Output tokens a second of all requests together; bands reach from the least to the most repeat.",
            _CONCURRENCY,
            _OUTPUT,
            [_throughput(run) for run in drawn],
        ),
        _over_concurrency("compare-ttft", "Time to the first token", drawn, lambda level: level.ttft_p50),
        _over_concurrency("compare-inter-token", "Time between tokens", drawn, lambda level: level.inter_token_p50),
        line_chart(
            "compare-trade-off",
            "Trade-off: throughput against time between tokens",
            "Each mark is a concurrency: further up is more for all, further left is faster for each.",
            Axis("Time between tokens, p50", "ms"),
            _OUTPUT,
            [_trade_off(run) for run in drawn],
        ),
    )


def _over_concurrency(id_: str, title: str, runs: Sequence[RunBeside], of: Reading) -> Chart:
    series = [
        Series(
            run.label,
            [ChartPoint(n, _ms(of(level)), hollow=level.noisy > 0) for n, level in run.levels.items()],
            look=run.number - 1,
        )
        for run in runs
    ]
    described = f"{title}, the median request of the median repeat: lower is better."
    return line_chart(id_, f"{title}, p50", described, _CONCURRENCY, Axis(title, "ms"), series)


def _throughput(run: RunBeside) -> Series:
    points = [
        ChartPoint(
            level.concurrency,
            level.output_tokens_per_s,
            level.output_tokens_per_s_least if level.repeats > 1 else None,
            level.output_tokens_per_s_most if level.repeats > 1 else None,
            hollow=level.noisy > 0,
            note="noisy" if level.noisy else "",
        )
        for level in run.levels.values()
    ]
    return Series(run.label, points, look=run.number - 1)


def _trade_off(run: RunBeside) -> Series:
    known = [(level, level.inter_token_p50) for level in run.levels.values() if level.inter_token_p50 is not None]
    points = [
        ChartPoint(1000 * each, level.output_tokens_per_s, label=str(level.concurrency), hollow=level.noisy > 0)
        for level, each in known
    ]
    return Series(run.label, points, look=run.number - 1)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds
