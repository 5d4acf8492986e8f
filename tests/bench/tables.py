"""The bench's answer as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.table import Table
from spread import IN_PROCESS, TRANSFORMERS, TRITON, Ratio, Spread, Summary
from step_profile import StepProfile

from roundhouse.serve.benchmark.points import NOISY_CORES
from roundhouse.serve.engine.stages import Stage

__all__ = ["profile_table", "speed_table"]

_MARK = "*"
_LABELS: dict[Stage, str] = {
    "schedule": "schedule",
    "prepare": "prepare",
    "guard": "guard",
    "attention": "attention",
    "linears": "linears",
    "lm_head": "lm_head",
    "forward": "rest of the model",
    "sampling": "sampling",
    "detokenize": "detokenize",
    "other": "other",
}
"""In the order in which they are shown."""


def speed_table(summaries: Sequence[Summary]) -> Table:
    """Output tokens a second by concurrency, and the ratios between systems."""
    table = Table(
        box=SIMPLE,
        leading=1,
        title="Output tokens a second, prompts included: median, and least–most below it",
        title_justify="left",
        caption=f"{_MARK} others kept more than {NOISY_CORES} cores busy in at least one repeat"
        if any(count for summary in summaries for count in summary.noisy.values())
        else None,
        caption_justify="left",
    )
    table.add_column("at once", justify="right")
    for system in (IN_PROCESS, TRITON, *TRANSFORMERS):
        table.add_column(system.replace("transformers ", "transformers\n"), justify="right", no_wrap=True)
    for heading in ("in process ÷\nbetter transformers", "Triton ÷\nbetter transformers", "Triton ÷\nin process"):
        table.add_column(heading, justify="right", no_wrap=True)
    for summary in summaries:
        speeds = [
            _spread(summary.tokens_per_s[system], bool(summary.noisy[system])) for system in (IN_PROCESS, TRITON, *TRANSFORMERS)
        ]
        table.add_row(str(summary.concurrency), *speeds, *(_ratio(each, summary) for each in summary.ratios))
    return table


def profile_table(profiles: Sequence[StepProfile], summaries: Sequence[Summary]) -> Table:
    """Milliseconds of a decode step by stage, and their part of the step, by concurrency."""
    table = Table(
        box=SIMPLE,
        title="A decode step by stage: ms, and % of the step",
        title_justify="left",
        caption=f"{_MARK} others kept more than {NOISY_CORES} cores busy"
        if any(each.others > NOISY_CORES for each in profiles)
        else None,
        caption_justify="left",
    )
    table.add_column("stage")
    for each in profiles:
        table.add_column(f"{each.concurrency} at once{_MARK if each.others > NOISY_CORES else ''}", justify="right")
        table.add_column("%", justify="right")
    for stage, label in _LABELS.items():
        table.add_row(label, *_parts([each.ms[stage] for each in profiles], profiles))
    table.add_section()
    table.add_row("step, clocked", *_parts([each.step_ms for each in profiles], profiles))
    table.add_row("step, not clocked", *_pairs([_decode_ms(summary) for summary in summaries]))
    table.add_row("transport", *_parts([summary.transport_ms.median for summary in summaries], profiles))
    return table


def _decode_ms(summary: Summary) -> str:
    decoding = summary.decode_tokens_per_s
    return "–" if decoding is None else f"{summary.concurrency / decoding.median * 1000:.2f}"


def _parts(values: Sequence[float], profiles: Sequence[StepProfile]) -> list[str]:
    """Milliseconds and their percentage of the step, by turns."""
    cells = []
    for value, each in zip(values, profiles, strict=True):
        cells += [f"{value:.2f}", f"{value / each.step_ms:.1%}"]
    return cells


def _pairs(values: Sequence[str]) -> list[str]:
    return [cell for value in values for cell in (value, "")]


def _ratio(each: Ratio, summary: Summary) -> str:
    noisy = bool(summary.noisy[each.above] or summary.noisy[each.below])
    return _cell(f"{each.spread.median:.2f}", f"{each.spread.least:.2f}–{each.spread.most:.2f}", noisy)


def _spread(value: Spread, noisy: bool) -> str:
    return _cell(_number(value.median), f"{_number(value.least)}–{_number(value.most)}", noisy)


def _cell(middle: str, span: str, noisy: bool) -> str:
    """Two lines: the median, and from where to where it goes."""
    return f"{middle}{_MARK if noisy else ' '}\n{span} "


def _number(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
