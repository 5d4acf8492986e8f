"""What a task is: who is asked, what comes back, and how it is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..records import Suite
from ..scorer import Need, Scorer

__all__ = ["DETAILS", "DOUBT", "Answered", "Ground", "Task", "shortened"]

DETAILS, DOUBT = "details", "doubt"
"""What a task leaves in its ground's memory once it is asked: numbers beside its value, and what a reader must know of them."""
_SHORTENED = 400
"""Characters of a question or an answer that are kept."""


@dataclass(frozen=True)
class Answered:
    """One question, and what came of it; as :class:`roundhouse.serve.accuracy.records.Item`."""

    number: int
    score: float
    asked: str
    answered: str
    wanted: str | None
    tokens: int | None = None
    part: str | None = None


@dataclass
class Ground:
    """Who is asked, and within which limits."""

    scorer: Scorer
    seed: int
    limit: int | None
    room: int | None
    """Tokens of a request at most, of subject and base alike; None where neither is known."""
    memory: dict[str, Any] = field(default_factory=dict)
    """What tasks keep for one another: a text that was read once."""
    progress: Callable[[float], None] = lambda _: None
    """Hears how much of a task is done, from 0 to 1, before its first answer is judged."""

    def cut(self, items: int) -> int:
        """How many of so many items are asked."""
        return items if self.limit is None else min(items, self.limit)


class Task(Protocol):
    """Something to be asked: a shipped suite, or a public task."""

    name: str
    suite: Suite
    metric: str
    higher_is_better: bool
    is_share: bool
    """Whether it is a share of right answers, and so falls under the gate."""
    compares: bool
    """Whether an item is a comparison with the base itself, so that without one there is nothing to measure."""

    def needs(self, scorer: Scorer) -> Need:
        """What it will ask for."""
        ...

    def size(self, ground: Ground) -> int:
        """Items that will be answered, for progress."""
        ...

    def answer(self, ground: Ground, base: Mapping[str, Any] | None) -> Iterator[Answered]:
        """Ask, and judge answers as they come.

        Args:
            ground: who is asked.
            base: what the base's ground remembers, once it was asked everything; None while it is asked itself.

        Raises:
            ServeError: an answer cannot be had, or the two cannot be compared.
            BenchmarkStoppedError: the evaluation is asked to end.
        """
        ...

    def note(self, ground: Ground) -> str:
        """How it asks, in a few words; only answers to what was asked alike are compared."""
        ...


def shortened(text: str) -> str:
    """A text that is kept for readers: of a long one the beginning and the end."""
    if len(text) <= _SHORTENED:
        return text
    half = (_SHORTENED - 3) // 2
    return f"{text[:half]} … {text[-half:]}"
