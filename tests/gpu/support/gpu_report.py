"""What tests on a GPU found, as a page: for the support table, with the machine that they ran on."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["Found", "machine", "report_text"]


@dataclass(frozen=True)
class Found:
    """One test: how it ended, why it was skipped, and numbers that it wrote down."""

    name: str
    outcome: str
    reason: str = ""
    numbers: dict[str, str] = field(default_factory=dict)


def report_text(found: Iterable[Found], machine_lines: Iterable[str], now: datetime | None = None) -> str:
    """The page."""
    tests = list(found)
    moment = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    counts = {outcome: sum(each.outcome == outcome for each in tests) for outcome in ("passed", "failed", "skipped")}
    lines = [f"# Tests on a GPU, {moment}", ""]
    lines += [f"- {line}" for line in machine_lines]
    lines += ["- " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()), ""]
    lines += ["| test | outcome | |", "| --- | --- | --- |"]
    for each in tests:
        said = "; ".join(
            [*(f"{name} {value}" for name, value in each.numbers.items()), *([each.reason] if each.reason else [])]
        )
        lines.append(f"| {each.name} | {each.outcome} | {said.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def machine() -> list[str]:
    """This machine's GPUs with their driver, Python, and the commit that is tested."""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap,memory.total", "--format=csv,noheader"]
    commit = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    gpus = _said(asked).splitlines() or ["no GPU is seen"]
    return [*gpus, f"Python {platform.python_version()}, {platform.platform()}", f"commit {_said(commit) or 'unknown'}"]


def _said(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout.strip()
    except OSError:
        return ""
