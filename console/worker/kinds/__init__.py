"""What jobs do, a module for each kind: ``run(task)`` does it and returns the job's result."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, get_args

from roundhouse.errors import UsageError

from ...models import JobKind
from ..task import Task

__all__ = ["KINDS", "run_kind"]

KINDS: tuple[JobKind, ...] = get_args(JobKind)


def run_kind(task: Task) -> dict[str, Any]:
    """Do what a task's kind does; returns the job's result.

    Raises:
        UsageError: this version has no such kind.
        RoundhouseError: what the kind raises when it fails for a reason that it knows.
    """
    if task.claim.kind not in KINDS:
        raise UsageError(f"this worker knows no jobs of the kind {task.claim.kind}")
    run: Callable[[Task], dict[str, Any]] = import_module(f".{task.claim.kind}", __package__).run
    return run(task)
