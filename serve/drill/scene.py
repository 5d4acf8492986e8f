"""What a fault can be put into: pool, scheduler's books, tracker, pages, and the tables of the step ahead."""

from __future__ import annotations

from collections.abc import Callable
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
    cancel: Callable[[str], None]
    """A client goes away."""
    ran: list[Sequence] = field(default_factory=list)
    """Who ran in the last step."""
    last_table: Int32Array | None = None
    """int32 [B, M], of the step before."""
    last_tags: Int32Array | None = None
    """int32 [P], at the end of the step before."""

    @property
    def running(self) -> list[Sequence]:
        """Who ran in the last step and still holds pages."""
        return [sequence for sequence in self.ran if sequence.grants]

    def a_sequence(self) -> Sequence | None:
        """Somebody who runs."""
        running = self.running
        return self.draw.choice(running) if running else None

    def a_grant(self) -> Grant | None:
        """A grant that somebody who runs presents."""
        sequence = self.a_sequence()
        return self.draw.choice(sequence.grants) if sequence else None

    def a_shared_grant(self) -> tuple[Grant, list[Sequence]] | None:
        """A grant of a page with other holders, and who of those that run presents it; of several who do, if there are any."""
        presented: dict[Grant, list[Sequence]] = {}
        for sequence in self.running:
            for grant in sequence.grants:
                if not self.pool.is_held_once(grant.page):
                    presented.setdefault(grant, []).append(sequence)
        several = [(grant, holders) for grant, holders in presented.items() if len({each.request_id for each in holders}) > 1]
        found = several or list(presented.items())
        return self.draw.choice(found) if found else None

    def a_withdrawn_grant(self) -> Grant:
        """A page of the pool, under a tag that it does not carry any more."""
        page = self.draw.randrange(self.pool.pages)
        tag = int(self.tracker.current[page])
        return Grant(page, tag - 1 if tag > 1 else 2)

    def a_written_page(self) -> tuple[int, int] | None:
        """A page that had another holder before, and how many tokens are written in it for its present one."""
        size = self.pages.page_tokens
        found = [
            (grant.page, min(sequence.computed - column * size, size))
            for sequence in self.running
            for column, grant in enumerate(sequence.grants)
            if self.tracker.times_granted[grant.page] > 1
        ]
        written = [(page, tokens) for page, tokens in found if tokens > 0]
        return self.draw.choice(written) if written else None
