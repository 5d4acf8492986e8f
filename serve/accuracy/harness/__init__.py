"""Public tasks, asked and judged by lm-evaluation-harness. Importing this loads nothing of it."""

from __future__ import annotations

from .data import PUBLIC_TASKS
from .task import public_task

__all__ = ["PUBLIC_TASKS", "public_task"]
