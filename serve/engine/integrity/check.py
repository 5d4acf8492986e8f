"""The integrity check of one loop: who guards, who issues tags, and what is said and counted when a page is not right."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from roundhouse.build.recipe import Guard
from roundhouse.plugins.guard import PageGuard, TorchPageGuard
from roundhouse.plugins.page_tag import NullTracker, PageTagTracker, Tracker

from ...settings import EngineSettings
from ..batch import StepBatch
from ..page_events import IntegrityEvent, MismatchKind
from ..page_history import NO_HISTORY, PageHistory
from ..runtime import PreparedBatch
from ..sequence import Sequence
from .content import ContentCheck

__all__ = ["Integrity", "IntegrityCheck", "Mismatch", "NullIntegrity", "create_integrity"]


class Mismatch(NamedTuple):
    """A row that must not run, and the first column that is not right."""

    row: int
    column: int
    kind: MismatchKind


class Integrity(Protocol):
    """What the loop asks of the check, on or off."""

    level: Guard
    tracker: Tracker
    history: PageHistory
    checks: int
    """Batches compared so far."""
    mismatches: int
    """Rows stopped so far because of a tag or a count."""
    content_mismatches: int
    """Rows stopped so far because of a page's content."""

    @property
    def content_checks(self) -> int:
        """Pages whose content was compared so far."""
        ...

    def bad_rows(self, prepared: PreparedBatch) -> list[Mismatch]:
        """Rows of a batch that must not run; empty when all are right."""
        ...

    def written(self, batch: StepBatch) -> None:
        """A batch has run: its tokens lie in pages now."""
        ...

    def event(self, mismatch: Mismatch, prepared: PreparedBatch, sequence: Sequence) -> IntegrityEvent:
        """Count a mismatch and tell all that is known of it."""
        ...


class IntegrityCheck:
    """Compares tags and, where asked to, contents.

    Args:
        tracker: issues the pool's tags.
        guard: compares them.
        page_tokens: tokens a page holds.
        history: who got which page.
        content: compares contents, or None.
    """

    def __init__(
        self,
        tracker: Tracker,
        guard: PageGuard,
        *,
        page_tokens: int,
        history: PageHistory,
        content: ContentCheck | None = None,
    ) -> None:
        self.level: Guard = "tags" if content is None else "tags+content"
        self.tracker = tracker
        self.history = history
        self.checks = self.mismatches = self.content_mismatches = 0
        self._guard = guard
        self._page_tokens = page_tokens
        self._content = content

    @property
    def content_checks(self) -> int:
        return 0 if self._content is None else self._content.checks

    def bad_rows(self, prepared: PreparedBatch) -> list[Mismatch]:
        tags = self.tracker.page_tags
        bad = dict(self._guard.bad_rows(prepared.page_table, prepared.page_count, prepared.expected_tags, tags))
        self.checks += 1
        # The guard looks at as many pages as the count says: one that is too small would leave pages unchecked.
        counts, contexts = prepared.page_count.tolist(), prepared.context_len.tolist()
        for row, (count, context) in enumerate(zip(counts, contexts, strict=True)):
            if count * self._page_tokens < context:
                bad.setdefault(row, max(count, 0))
        if bad:
            return [Mismatch(row, column, self._kind(prepared, row, column)) for row, column in sorted(bad.items())]
        if self._content is None:
            return []
        return [Mismatch(row, column, "content") for row, column in self._content.bad_cells(prepared)]

    def written(self, batch: StepBatch) -> None:
        if self._content is not None:
            self._content.written(batch)

    def event(self, mismatch: Mismatch, prepared: PreparedBatch, sequence: Sequence) -> IntegrityEvent:
        row, column, kind = mismatch
        if kind == "content":
            self.content_mismatches += 1
        else:
            self.mismatches += 1
        page, expected, found = None, 0, None
        if column < prepared.page_table.shape[1]:
            page, expected = int(prepared.page_table[row, column]), int(prepared.expected_tags[row, column])
            tags = self.tracker.page_tags
            found = int(tags[page]) if 0 <= page < len(tags) else None
        step = self.history.step
        return IntegrityEvent(
            event=f"{sequence.request_id}/{step}/{sequence.index}",
            time=time.time(),
            kind=kind,
            request_id=sequence.request_id,
            answer=sequence.index,
            step=step,
            column=column,
            page=page,
            expected_tag=expected,
            found_tag=found,
            last_holders=[] if page is None else self.history.last_holders(page),
        )

    def _kind(self, prepared: PreparedBatch, row: int, column: int) -> MismatchKind:
        return "tag" if column < min(int(prepared.page_count[row]), prepared.page_table.shape[1]) else "count"


class NullIntegrity:
    """The guard is off: nothing is compared, and tags are not even issued."""

    def __init__(self) -> None:
        self.level: Guard = "off"
        self.tracker: Tracker = NullTracker()
        self.history = NO_HISTORY
        self.checks = self.mismatches = self.content_mismatches = self.content_checks = 0

    def bad_rows(self, prepared: PreparedBatch) -> list[Mismatch]:
        return []

    def written(self, batch: StepBatch) -> None:
        return None

    def event(self, mismatch: Mismatch, prepared: PreparedBatch, sequence: Sequence) -> IntegrityEvent:
        raise AssertionError("nothing is found when nothing is compared")


def create_integrity(
    settings: EngineSettings, read: Callable[[int], npt.NDArray[np.uint8]], guard: PageGuard | None = None
) -> Integrity:
    """What the settings ask for. Off is chosen here, once: nothing of it is left in a step.

    Args:
        settings: the level, the sample and the pool's size.
        read: bytes of a page as they are now, uint8 [page_bytes].
        guard: compares tags; torch's operation on whatever device the tables are when None.
    """
    if settings.guard == "off":
        return NullIntegrity()
    pages, page_tokens = settings.kv.pages, settings.page_tokens
    content = None
    if settings.guard == "tags+content":
        content = ContentCheck(pages, page_tokens, read, share=settings.guard_sample)
    return IntegrityCheck(
        PageTagTracker(pages),
        guard or TorchPageGuard(),
        page_tokens=page_tokens,
        history=PageHistory(pages),
        content=content,
    )
