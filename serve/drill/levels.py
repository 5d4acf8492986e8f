"""How much an episode's engine checks."""

from __future__ import annotations

from dataclasses import dataclass

from roundhouse.build.recipe import Guard

from ..engine.integrity import ContentCheck, IntegrityCheck, Mismatch, PageHistory
from ..engine.runtime import PreparedBatch
from .kinds import FaultKind
from .pages import DrilledPages
from .truth import WitnessTracker

__all__ = ["Level", "create_check"]


@dataclass(frozen=True)
class Level:
    """What is checked: the guard's level, and how likely each full page's content is compared before each step."""

    guard: Guard
    share: float = 1.0

    @property
    def samples(self) -> bool:
        """Whether chance decides which contents are compared."""
        return self.guard == "tags+content" and self.share < 1

    def probability(self, kind: FaultKind) -> float:
        """How likely a fault of this kind is found before anybody runs with it, at least."""
        if self.guard == "off" or (self.guard == "tags" and kind.seen_by == "content"):
            return 0.0
        return self.share if kind.is_sampled else 1.0


class _Unchecked(IntegrityCheck):
    """The guard is off, but the truth is still noted, to see what comes of it."""

    def bad_rows(self, prepared: PreparedBatch) -> list[Mismatch]:
        return []


def create_check(level: Level, tracker: WitnessTracker, pages: DrilledPages, *, count: int, seed: int) -> IntegrityCheck:
    """The loop's own check, on the witness's tags.

    Args:
        level: what is checked.
        tracker: issues the tags.
        pages: whose contents are compared, by the check that belongs to them.
        count: how many pages there are.
        seed: decides which contents are compared.
    """
    history = PageHistory(count)
    if level.guard == "off":
        return _Unchecked(tracker, pages.page_guard, page_tokens=pages.page_tokens, history=history)
    content = None
    if level.guard == "tags+content":
        content = ContentCheck(count, pages.page_tokens, pages.page_bytes, share=level.share, seed=seed)
    return IntegrityCheck(tracker, pages.page_guard, page_tokens=pages.page_tokens, history=history, content=content)
