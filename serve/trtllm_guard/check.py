"""The check between a step's grants and the step: whoever presents another's page leaves the batch, in every rank."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from roundhouse.errors import ServeError
from roundhouse.plugins.guard import PageGuard

from ..engine.page_events import IntegrityEvent, MismatchKind, mismatch_error
from .book import PageBook
from .protocols import CacheManager, Executor, Ranks, Request, ScheduledBatch, context_end, real_requests
from .rows import PageTables
from .telling import GuardState

if TYPE_CHECKING:
    import torch

__all__ = ["StepCheck"]

_log = logging.getLogger(__name__)


class StepCheck:
    """Checks the steps of one rank.

    Args:
        guard: compares tags, where the pages are, on the current stream; it waits for the answer.
        state: where it is told what happened.
        events: is given every integrity event, in the rank that writes them.
    """

    def __init__(self, guard: PageGuard, state: GuardState, events: Callable[[IntegrityEvent], None] | None = None) -> None:
        self.state = state
        self._guard = guard
        self._events = events
        self._writes_events = False
        self._manager: Callable[[], CacheManager | None] = lambda: None
        self._passed: frozenset[int] = frozenset()
        """Requests that may run in the step that comes now."""

    def made(self, manager: CacheManager) -> None:
        """A manager that notes its grants was made. It is not kept: the first one may only be there to estimate."""
        self._manager = weakref.ref(manager)

    def knows(self, pool: torch.Tensor) -> bool:
        """Whether these pages are those of the latest manager that notes its grants."""
        manager = self._manager()
        return manager is not None and manager.get_unique_primary_pool().data_ptr() == pool.data_ptr()

    def write_events(self) -> None:
        """This rank is the one that writes events down: all find the same."""
        self._writes_events = True

    def before_step(self, executor: Executor, batch: ScheduledBatch) -> None:
        """Compare all pages of a batch, and end the requests with wrong ones.

        Raises:
            ServeError: the executor's manager is not ours, or ranks are not of one mind about the batch. Nothing may run.
        """
        manager = executor.kv_cache_manager
        book = getattr(manager, "page_book", None)
        if book is None:
            raise ServeError("this executor's KV cache manager does not note its grants: its pages cannot be checked")
        requests = real_requests(batch)
        presented = manager.get_batch_cache_indices([request.py_request_id for request in requests])
        events = self._mismatches(manager, batch, requests, presented)
        self.state.book = book
        self.state.checks += 1
        found = _of_all_ranks(executor.dist, events)
        if found:
            self._end(executor, batch, found)
        self._passed = frozenset(request.py_request_id for request in real_requests(batch))

    def step(self, batch: ScheduledBatch) -> None:
        """A batch is about to run. One that was not checked runs too, but the engine is not ready any more."""
        self.state.steps += 1
        unchecked = {request.py_request_id for request in real_requests(batch)} - self._passed
        if unchecked and not self.state.unguarded:
            self.state.unguarded = True
            _log.error("a step runs requests %s that the page check has not seen; restart the engine", sorted(unchecked))
        self._passed = frozenset()

    def _mismatches(
        self, manager: CacheManager, batch: ScheduledBatch, requests: Sequence[Request], presented: Sequence[Sequence[int]]
    ) -> list[IntegrityEvent]:
        """One for each row with a wrong page or too few of them."""
        import torch

        if not requests:
            return []
        book = manager.page_book
        tables = book.tables(requests, presented)
        table, count, expected = (
            torch.from_numpy(each).to(manager.page_device)
            for each in (tables.page_table, tables.page_count, tables.expected_tags)
        )
        bad = dict(self._guard.bad_rows(table, count, expected, book.tracker.page_tags))
        context = {id(request) for request in batch.context_requests}
        for row, request in enumerate(requests):
            tokens = _tokens_after(request, in_context=id(request) in context)
            if len(presented[row]) * book.page_tokens < tokens:
                bad.setdefault(row, len(presented[row]))
        return [_event(book, tables, row, column, requests[row]) for row, column in sorted(bad.items())]

    def _end(self, executor: Executor, batch: ScheduledBatch, found: dict[int, IntegrityEvent]) -> None:
        failed = [request for request in batch.all_requests() if request.py_request_id in found]
        if len(failed) != len(found):
            raise ServeError("ranks run different batches: a page was found wrong of a request that is not in this rank's")
        batch.context_requests = _without(batch.context_requests, found)
        batch.generation_requests = _without(batch.generation_requests, found)
        if any(request.py_request_id in found for request in batch.all_requests()):
            raise ServeError("a request with a wrong page could not be taken out of its batch: nothing may run")
        manager = executor.kv_cache_manager
        for request in failed:
            event = found[request.py_request_id]
            _log.error("%s", event)
            if self._events is not None and self._writes_events:
                self._events(event)
            self.state.mismatches += 1
            manager.page_book.condemn(request.py_request_id)
            executor._handle_errors(str(mismatch_error(event)), requests=[request])
        # The tree may hand out what was just found wrong, and what the failing requests gave it before.
        manager.forget_prefixes()


def _of_all_ranks(ranks: Ranks, events: list[IntegrityEvent]) -> dict[int, IntegrityEvent]:
    """What any rank found, by request: the first rank's word counts."""
    told = ranks.tp_allgather(events) if ranks.tp_size > 1 else [events]
    return {int(event.request_id): event for each in reversed(told) for event in each}


def _tokens_after(request: Request, *, in_context: bool) -> int:
    """How many tokens a request's pages hold after the step."""
    if in_context:
        return context_end(request)
    return request.max_beam_num_tokens + len(request.py_draft_tokens or ())


def _without(requests: list[Request], found: dict[int, IntegrityEvent]) -> list[Request]:
    return [request for request in requests if request.py_request_id not in found]


def _event(book: PageBook, tables: PageTables, row: int, column: int, request: Request) -> IntegrityEvent:
    page, expected, tag = None, 0, None
    tags, step = book.tracker.page_tags, book.history.step
    counted = column < int(tables.page_count[row])
    kind: MismatchKind = "tag" if counted else "count"
    if counted:
        page, expected = int(tables.page_table[row, column]), int(tables.expected_tags[row, column])
        tag = int(tags[page]) if 0 <= page < len(tags) else None
    return IntegrityEvent(
        event=f"{request.py_request_id}/{step}/0",
        time=time.time(),
        kind=kind,
        request_id=str(request.py_request_id),
        answer=0,
        step=step,
        column=column,
        page=page,
        expected_tag=expected,
        found_tag=tag,
        last_holders=[] if page is None else book.history.last_holders(page),
    )
