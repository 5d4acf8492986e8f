"""A plan for people: text that says the same when it is pasted into a ticket, from the same report as the JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from .memory_bar import memory_bars
from .plan import Plan
from .report import PlanReport, report_of
from .report_parts import ProblemReport, StageReport
from .side_by_side import SideBySide, brief_facts
from .view_facts import devices_text, facts_of, price_text, speed_text, verdict_text

__all__ = ["compare_view", "plan_view"]


def plan_view(plan: Plan | PlanReport) -> RenderableType:
    """What one plan takes, what fits, how fast it decodes, and the reasons when it is refused."""
    report = _report(plan)
    facts = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    facts.add_column(style="bold", no_wrap=True)
    for label, value in facts_of(report).items():
        facts.add_row(label, Text(value, overflow="fold"))
    title = Text(f"Plan of {report.model} for {devices_text(report)}: {verdict_text(report)}", style="bold")
    return _Trimmed(Group(title, "", facts, *_memory([report]), *_decode(report), *_remarks([report])))


def compare_view(plans: Sequence[Plan | PlanReport], names: Sequence[str] | None = None) -> RenderableType:
    """Several plans side by side: what differs is marked, and a remark that only some of them earn names them.

    ``names`` says of each plan what it was made from; its model when None.
    """
    reports = [_report(plan) for plan in plans]
    heads = list(names or (report.model for report in reports))
    title = Text(f"{len(reports)} plans; bytes in memory are those of one device; ≠ marks what differs", style="bold")
    return _Trimmed(
        Group(
            title,
            SideBySide({"plan of": heads, **brief_facts(reports)}),
            *_memory(reports),
            *_remarks(reports),
        )
    )


def _report(plan: Plan | PlanReport) -> PlanReport:
    return plan if isinstance(plan, PlanReport) else report_of(plan)


@dataclass(frozen=True)
class _Trimmed:
    """Lines without the spaces that tables put behind their cells, which would be copied too."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self.content, options, pad=False):
            text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
            text.rstrip()
            yield text


def _memory(reports: Sequence[PlanReport]) -> list[RenderableType]:
    memories: list[tuple[str, StageReport]] = []
    for number, report in enumerate(reports, 1):
        for index, stage in enumerate(report.stages, 1):
            names = [f"plan {number}"] if len(reports) > 1 else []
            if len(report.stages) > 1:
                names += [] if names else [f"stage {index}"]
                names.append(f"layers {stage.first_layer}-{stage.last_layer}")
            memories.append((", ".join(names), stage))
    on_gpu = all(report.hardware.kind == "cuda" for report in reports)
    gpus = f"each of {reports[0].gpus} GPUs" if reports[0].gpus > 1 else "the GPU"
    whose = "one device" if len(reports) > 1 else gpus if on_gpu else "this machine"
    return [_heading(f"Memory of {whose}, in GiB"), memory_bars(memories, taken_by="driver" if on_gpu else "taken")]


def _decode(report: PlanReport) -> list[RenderableType]:
    heading = _heading(f"Decode, requests of {report.decode_context:,} tokens")
    if not report.decode:
        known = report.hardware.bandwidth_bytes_per_s is not None
        why = "no request of this length fits" if known else f"the memory bandwidth of {report.gpu} is not known"
        return [heading, Text(f"  not predicted: {why}")]
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="")
    priced = report.decode[0].price_per_million_tokens is not None
    for column in ("requests at once", "tokens/s", "basis", *(["price per million tokens"] if priced else [])):
        table.add_column(column, justify="left" if column == "basis" else "right")
    for row in report.decode:
        table.add_row(str(row.concurrency), speed_text(row), row.basis, *([price_text(row)] if priced else []))
    return [heading, table]


def _remarks(reports: Sequence[PlanReport]) -> list[RenderableType]:
    """The verdict; every problem, warning and assumption once, with the plans that earn it where not all do."""
    verdict = f"Verdict: {verdict_text(reports[0])}" if len(reports) == 1 else "Problems"
    lists = (
        (verdict, "✗", "red", [[_problem_text(problem) for problem in report.problems] for report in reports]),
        ("Not built by this version", "!", "yellow", [[report.unbuilt] if report.unbuilt else [] for report in reports]),
        ("Warnings", "!", "yellow", [list(report.warnings) for report in reports]),
        ("Assumptions", "-", "", [list(report.assumptions) for report in reports]),
    )
    found: list[RenderableType] = [] if any(lists[0][3]) or len(reports) > 1 else [_heading(verdict)]
    for heading, mark, style, texts in lists:
        if any(texts):
            found += [_heading(heading), _bullets(mark, style, texts)]
    return found


def _problem_text(problem: ProblemReport) -> str:
    where = "" if problem.where in problem.message else f" [{problem.where}]"
    legal = problem.legal_alternatives
    order = ", nearest first" if len(legal) > 1 else ""
    return f"{problem.message}{where}" + (f"\nlegal instead{order}: {', '.join(legal)}" if legal else "")


def _bullets(mark: str, style: str, of_each: Sequence[Sequence[str]]) -> Table:
    plans: dict[str, list[str]] = {}
    for number, texts in enumerate(of_each, 1):
        for text in texts:
            plans.setdefault(text, []).append(str(number))
    table = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    for text, numbers in plans.items():
        some = f"plan{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: "
        whose = "" if len(numbers) == len(of_each) else some
        table.add_row(Text(mark, style=style), Text(whose + text, style=style, overflow="fold"))
    return table


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold")
