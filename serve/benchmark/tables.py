"""Runs, comparisons and checks as tables that can be pasted into a ticket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .checking import Check
from .comparing import ComparedRun, Comparison
from .judging import words_of
from .labels import settings_words
from .records import Benchmark
from .statistics import QUANTITIES, Level, PrefillLevel, Ratio, Spread, levels_of, prefill_levels_of, summary_of

__all__ = ["check_view", "comparison_view", "run_view", "runs_table"]

_MISSING = "—"
_NOT_KNOWN = "not known"


def runs_table(runs: Iterable[Benchmark]) -> Table:
    """One row a run."""
    table = _table(
        "id",
        "measured",
        "state",
        "what",
        "workload",
        "hardware",
        right=("most tokens/s", "at", "alone", "failed"),
        fold="hardware",
    )
    for run in runs:
        summary = summary_of(run.points, run.prefill)
        table.add_row(
            run.id,
            f"{run.header.began_at:%Y-%m-%d %H:%M}",
            run.state,
            Text(run.header.subject.name),
            Text(run.header.workload.words),
            Text(run.header.ran_on or _NOT_KNOWN),
            _rate_text(summary.tokens_per_s_most),
            _MISSING if summary.concurrency_most is None else str(summary.concurrency_most),
            _rate_text(summary.tokens_per_s_alone),
            str(summary.failed),
        )
    return table


def run_view(run: Benchmark, folder: Path) -> Group:
    """One run: what it was, its levels, its prefill."""
    header, subject = run.header, run.header.subject
    versions = ", ".join(f"{name} {version}" for name, version in header.environment.versions.items())
    repeats = "1 repeat" if header.repeats == 1 else f"{header.repeats} repeats"
    facts = [
        ("run", f"{run.id}  {run.state}" + (f": {run.problem}" if run.problem else "")),
        ("folder", str(folder)),
        ("measured", f"{header.began_at:%Y-%m-%d %H:%M} UTC by {header.driver} {header.driver_version or ''}".rstrip()),
        ("imported from", header.imported_from),
        ("subject", f"{subject.name} ({subject.model})" + (f", engine {subject.engine_id}" if subject.engine_id else "")),
        ("settings", settings_words(subject)),
        ("endpoint", ", ".join(filter(None, (subject.url, subject.server)))),
        ("workload", f"{header.workload.words} ({header.workload.key}), {repeats}"),
        ("hardware", f"{header.ran_on or _NOT_KNOWN}, asked from {header.environment.host}"),
        ("versions", versions),
        ("by turns", header.session and f"session {header.session}"),
        ("again", header.command),
    ]
    parts: list[RenderableType] = [_facts([(name, text) for name, text in facts if text])]
    if run.points:
        parts.append(_levels(levels_of(run.points)))
    if run.prefill:
        parts.append(_prefill(prefill_levels_of(run.prefill)))
    return Group(*parts)


def comparison_view(comparison: Comparison) -> Group:
    """Ratios, differences and warnings."""
    parts: list[RenderableType] = []
    for run in comparison.runs:
        turns = ", measured by turns" if run.paired else ""
        parts.append(Text(f"{run.id} ({run.name}) over {comparison.base} ({comparison.base_name}){turns}"))
        parts.append(_ratios(run))
    if comparison.differences:
        parts.append(Text("What differs"))
        table = _table("", "", comparison.base, *(run.id for run in comparison.runs))
        for each in comparison.differences:
            table.add_row(each.part, Text(each.key), *(Text(value) for value in each.values))
        parts.append(table)
    else:
        parts.append(Text("Nothing differs between them that is written down."))
    return Group(*parts, *_warnings(comparison.warnings))


def check_view(checked: Check) -> Group:
    """The verdict first, then what it rests on."""
    head = f"{checked.verdict}: {checked.run} against {checked.baseline}"
    table = _table("over all that both share", right=("ratio", "p (Holm)", "least possible p", "repeats"), last="")
    for each in checked.quantities:
        p, least = f"{each.p:.3g}", f"{each.least_p:.2g}"
        told = f"✗ {each.verdict}" if each.verdict == "regressed" else each.verdict
        table.add_row(words_of(each.quantity), f"{each.ratio:.3f}", p, least, str(each.repeats), told)
    reasons = [Text(f"  {reason}") for reason in checked.reasons]
    failures = Text(f"{checked.failures.words}; concurrencies {', '.join(map(str, checked.concurrencies))}")
    style = {"passed": "green", "passed in part": "yellow"}.get(checked.verdict, "bold red")
    return Group(Text(head, style=style), *reasons, table, failures, *_warnings(checked.warnings))


def _levels(levels: Sequence[Level]) -> Table:
    times = [head for name in ("TTFT", "inter token", "end to end") for head in (f"{name} p50", "p99")]
    table = _table(right=("at once", "tokens/s", "range", "requests/s", *times, "failed", "disturbed"))
    for level in levels:
        speed = level.output_tokens_per_s
        latencies = (level.ttft_p50, level.ttft_p99, level.inter_token_p50, level.inter_token_p99)
        table.add_row(
            str(level.concurrency),
            f"{speed.median:,.1f}",
            f"{speed.least:,.1f}–{speed.most:,.1f}",
            f"{level.requests_per_s.median:,.2f}",
            *(_time(each) for each in (*latencies, level.end_to_end_p50, level.end_to_end_p99)),
            str(level.failed),
            f"{level.noisy} of {level.repeats}",
        )
    return table


def _prefill(levels: Sequence[PrefillLevel]) -> Table:
    table = _table(right=("prompt tokens", "prefill tokens/s", "range", "TTFT p50", "failed", "disturbed"))
    for level in levels:
        speed = level.tokens_per_s
        told = (_MISSING, _MISSING) if speed is None else (f"{speed.median:,.0f}", f"{speed.least:,.0f}–{speed.most:,.0f}")
        disturbed = f"{level.noisy} of {level.repeats}"
        table.add_row(f"{level.input_tokens:,}", *told, _time(level.ttft_p50), str(level.failed), disturbed)
    return table


def _ratios(run: ComparedRun) -> Table:
    table = _table("quantity", right=("at", "base", "this", "ratio", "interval"), last="")
    for each in run.quantities:
        quantity = QUANTITIES[each.quantity]
        show = _time_text if quantity.unit == "s" else _rate_text
        table.add_row(quantity.words, str(each.concurrency), show(each.base), show(each.other), *_ratio(each.ratio))
    for one in run.prefill:
        name, length = "prefill tokens/s", f"{one.input_tokens:,} in"
        table.add_row(name, length, _rate_text(one.base), _rate_text(one.other), *_ratio(one.ratio))
    return table


def _ratio(ratio: Ratio) -> tuple[str, str, str]:
    """The ratio, its interval, and a word on it."""
    value = _MISSING if ratio.value is None else f"× {ratio.value:.3f}"
    if ratio.low is None or ratio.high is None:
        return value, _MISSING, ratio.why or ""
    sure = f" ({100 * ratio.confidence:.3g}%)" if ratio.confidence else ""
    return value, f"{ratio.low:.3f} to {ratio.high:.3f}{sure}", "" if ratio.differs else "no clear difference"


def _warnings(warnings: Sequence[str]) -> list[Text]:
    return [Text(f"! {warning}", style="yellow") for warning in warnings]


def _time(spread: Spread | None) -> str:
    return _time_text(None if spread is None else spread.median)


def _time_text(seconds: float | None) -> str:
    if seconds is None:
        return _MISSING
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def _rate_text(value: float | None) -> str:
    return _MISSING if value is None else f"{value:,.1f}"


def _table(*left: str, right: Sequence[str] = (), last: str | None = None, fold: str | None = None) -> Table:
    table = Table(box=SIMPLE)
    for name in left:
        table.add_column(name, overflow="fold", no_wrap=name == "id", max_width=24 if name == fold else None)
    for name in right:
        table.add_column(name, justify="right", no_wrap=name == "range")
    if last is not None:
        table.add_column(last)
    return table


def _facts(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    return table
