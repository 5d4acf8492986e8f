"""The shipped suites: they need no data and no network, and are named so that nobody takes them for public ones.

A question depends on the suite, the seed and its number alone, never on who is asked: so that answers can be paired.
"""

from __future__ import annotations

from .arithmetic import Arithmetic
from .calls import Calls
from .contract import Task
from .needle import Needle
from .reading import Agreement, Perplexity

__all__ = ["SHIPPED"]

SHIPPED: dict[str, Task] = {task.name: task for task in (Perplexity(), Agreement(), Arithmetic(), Needle(), Calls())}
"""By name, in the order in which they run."""
