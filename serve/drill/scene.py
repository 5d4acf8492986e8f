"""What a fault can be put into: the real pool, the tracker, the pages, and the tables of the step ahead."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from roundhouse.plugins.page_tag import Int32Array

from ..engine.batch import StepBatch
from ..engine.pool import Grant, PagePool
from ..engine.runtime import PreparedBatch
from ..engine.sequence import Sequence
from .pages import DrilledPages
from .truth import WitnessTracker

__all__ = ["FaultyPool", "Scene", "TablesAhead"]


class FaultyPool(PagePool):
    """A page pool with the mistakes that an allocator can make."""

    def free_early(self, grant: Grant) -> None:
        """Let go of a page for somebody who goes on using it."""
        self.release([grant])

    def grant_again(self, page: int) -> None:
        """Put a page that is held on the free list, next in turn."""
        self._free.appendleft(page)

    def miscount(self, page: int) -> None:
        """Forget one holder of a page."""
        self._holders[page] -= 1


@dataclass
class TablesAhead:
    """A batch that is about to run, and the tables that the device gets."""

    batch: StepBatch
    prepared: PreparedBatch


@dataclass
class Scene:
    """Everything of one episode that can be damaged, and what it looked like in the step before."""

    draw: Random
    pool: FaultyPool
    tracker: WitnessTracker
    pages: DrilledPages
    running: list[Sequence] = field(default_factory=list)
    """Who ran in the last step and still holds pages."""
    last_table: Int32Array | None = None
    """int32 [B, M], of the step before."""
    last_tags: Int32Array | None = None
    """int32 [P], as the guard saw them in the step before."""

    def a_grant(self, *, shared: bool = False) -> Grant | None:
        """A grant that somebody who runs presents."""
        grants = [grant for sequence in self.running for grant in sequence.grants]
        if shared:
            grants = [grant for grant in grants if not self.pool.is_held_once(grant.page)]
        return self.draw.choice(grants) if grants else None

    def a_written_page(self) -> tuple[int, int] | None:
        """A page that had another holder before, and how many tokens are written in it for its present one."""
        size = self.pages.page_tokens
        found = [
            (grant.page, min(sequence.computed - column * size, size))
            for sequence in self.running
            for column, grant in enumerate(sequence.grants)
            if self.tracker.times_granted[grant.page] > 1
        ]
        written = [(page, tokens) for page, tokens in found if tokens >= self.pages.shortest_damaged]
        return self.draw.choice(written) if written else None
