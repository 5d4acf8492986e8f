"""Benchmark runs and evaluations on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table

from ..benchmarks.records import BenchmarkDetail, BenchmarkRow
from ..evaluations.records import EvaluationDetail, EvaluationRow
from .tables import facts_of, table_of, time_text

__all__ = ["benchmark_view", "benchmarks_table", "evaluation_view", "evaluations_table"]


def benchmarks_table(runs: Iterable[BenchmarkRow]) -> Table:
    """One row per run."""
    rows = [
        (
            run.id,
            run.name,
            run.workload,
            run.hardware,
            run.state,
            _rate(run.tokens_per_s_alone),
            _rate(run.tokens_per_s_most),
            "" if run.concurrency_most is None else str(run.concurrency_most),
            time_text(run.began_at),
        )
        for run in runs
    ]
    return table_of(("id", "of", "workload", "hardware", "state", "alone tokens/s", "most tokens/s", "at once", "at"), rows)


def benchmark_view(run: BenchmarkDetail) -> RenderableType:
    """One run, with a row for each concurrency."""
    measured = len(run.all_points) + len(run.all_prefill)
    facts = facts_of(
        [
            ("run", f"{run.id}  {run.name}"),
            ("state", run.state if run.problem is None else f"{run.state}: {run.problem}"),
            ("measured", f"{time_text(run.began_at)} with {run.driver}, {run.workload}"),
            ("hardware", f"{run.hardware}, {run.host}" if run.host else run.hardware),
            (
                "noisy",
                f"{run.noisy} of {measured} points were disturbed" if run.noisy else None,
            ),
            ("failed", f"{run.failed:,} requests" if run.failed else None),
            ("prefill", None if run.prefill_tokens_per_s is None else f"{_rate(run.prefill_tokens_per_s)} tokens/s"),
            ("again", run.header.command),
        ]
    )
    rows = [
        (
            str(level.concurrency),
            _rate(level.output_tokens_per_s),
            f"{_rate(level.output_tokens_per_s_least)} to {_rate(level.output_tokens_per_s_most)}",
            _seconds(level.ttft_p50),
            _seconds(level.inter_token_p50),
        )
        for level in run.levels
    ]
    return Group(facts, table_of(("at once", "tokens/s", "repeats", "TTFT", "between"), rows))


def evaluations_table(evaluations: Iterable[EvaluationRow]) -> Table:
    """One row per evaluation."""
    rows = [
        (
            each.id,
            each.name,
            each.base_name or "",
            each.state,
            each.gate,
            _points(each.worst_difference),
            time_text(each.began_at),
        )
        for each in evaluations
    ]
    return table_of(("id", "of", "base", "state", "gate", "worst", "at"), rows)


def evaluation_view(found: EvaluationDetail) -> RenderableType:
    """One evaluation, with a row for each task."""
    reasons = " ".join(found.gate_reasons)
    facts = facts_of(
        [
            ("evaluation", f"{found.id}  {found.name}"),
            ("state", found.state if found.problem is None else f"{found.state}: {found.problem}"),
            ("base", found.base_name),
            ("gate", f"{found.gate}: {reasons}" if reasons else found.gate),
            ("again", found.header.command),
        ]
    )
    rows = [
        (
            score.task,
            score.metric,
            f"{score.value:.4g}" + ("" if score.stderr is None else f" ± {score.stderr:.2g}"),
            "" if score.difference is None else f"{score.difference.value:+.3g}",
        )
        for score in found.all_scores
    ]
    return Group(facts, table_of(("task", "metric", "value", "against"), rows))


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4f} s"


def _points(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}"
