"""A drill's report for people."""

from __future__ import annotations

from rich.table import Table

from .report import DrillReport, Failure, KindReport

__all__ = ["drill_table", "drill_verdict", "replay_command"]


def drill_table(report: DrillReport) -> Table:
    """A row for each kind of fault at each level."""
    table = Table("fault", "checked", box=None, pad_edge=False, header_style="bold")
    for heading in ("put in", "effective", "stopped", "wrong rows", "leaked", "false alarms", "delay"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for kind in report.kinds:
        table.add_row(
            kind.fault or "none",
            _level(kind),
            f"{kind.injected:,}",
            f"{kind.effective:,}",
            f"{kind.detected:,}",
            f"{kind.wrong_rows_run:,}",
            f"{kind.leaked_tokens:,}",
            f"{kind.false_alarms:,}",
            f"{kind.delay_steps:,}",
            _judgement(kind),
        )
    return table


def drill_verdict(report: DrillReport) -> str:
    """What it comes to, and how each failure is played again."""
    head = f"{report.grants:,} pages granted, {report.faults:,} faults put in, {report.steps:,} steps, seed {report.seed}"
    if report.passed:
        leaked = sum(kind.leaked_tokens for kind in report.kinds if kind.probability == 0)
        unseen = f"; {leaked:,} tokens leaked at levels that do not see it" if leaked else ""
        return f"passed: {head}{unseen}"
    lines = [f"FAILED: {head}"]
    for failure in report.failures:
        lines += [f"  {failure.fault or 'no fault'}: {failure.why}", f"    {replay_command(failure, report.engine)}"]
    return "\n".join(lines)


def replay_command(failure: Failure, engine: str | None) -> str:
    """Plays the failing episode, and nothing else."""
    parts = [
        "roundhouse drill",
        engine or "",
        f"--seed {failure.seed} --steps {failure.steps}",
        f"--fault {failure.fault or 'none'}",
    ]
    parts.append(f"--guard {failure.guard}")
    if failure.guard_sample is not None:
        parts.append(f"--guard-sample {failure.guard_sample}")
    return " ".join(part for part in parts if part)


def _level(kind: KindReport) -> str:
    if kind.guard_sample is None or kind.guard_sample == 1:
        return kind.guard
    return f"{kind.guard}, {kind.guard_sample:.0%}"


def _judgement(kind: KindReport) -> str:
    if not kind.passed:
        return "FAILED"
    if kind.fault is not None and not kind.effective:
        return "not tried"
    if kind.guard == "off":
        return "nobody looks"
    if kind.probability == 0:
        return "not seen by tags"
    if kind.probability == 1:
        return "passed"
    share = kind.detected / kind.effective if kind.effective else 0.0
    return f"{share:.1%} in time{'' if kind.is_judged else ', too few to judge'}"
