"""All tasks by name: the shipped suites and the public ones."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from roundhouse.errors import UsageError

from .harness import PUBLIC_TASKS, public_task
from .suites import SHIPPED
from .suites.contract import Task

__all__ = ["TASK_NAMES", "tasks_named"]

TASK_NAMES = (*SHIPPED, *PUBLIC_TASKS)


def tasks_named(names: Sequence[str], *, data: Path | None) -> list[Task]:
    """The tasks with these names; all shipped suites for none.

    Args:
        names: what is asked for.
        data: folder with data sets of public tasks; None takes them from the hub.

    Raises:
        UsageError: there is no such task, or its data is not at hand.
        SetupError: lm-evaluation-harness is not installed.
    """
    for name in names:
        if name not in TASK_NAMES:
            near = get_close_matches(name, TASK_NAMES, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise UsageError(f"there is no task {name!r}", hint=f"{hint}There are: {', '.join(TASK_NAMES)}.")
    if len(set(names)) != len(names):
        raise UsageError(f"a task is named twice: {', '.join(names)}")
    return [SHIPPED[name] if name in SHIPPED else public_task(name, data) for name in names or SHIPPED]
