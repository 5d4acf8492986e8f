"""Who was granted which page, under which tag: kept beside TensorRT-LLM's manager, from what it answers after its grants.

The manager says which blocks a request has, never which are new. New is every column that a request did not have before, except
those that the reuse tree filled when it began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roundhouse.plugins.page_tag import FREE, PageTagTracker

from ..engine.page_history import PageHistory
from ..engine.pool import Grant
from .prefixes import NEVER_ISSUED, PrefixBook
from .protocols import Request, context_end
from .rows import NO_ROW, PageRow, PageTables, lay_out

__all__ = ["PageBook", "PageCounts"]


@dataclass(frozen=True)
class PageCounts:
    """Every page is counted by one of these."""

    free: int
    used: int
    cached: int
    """Only the reuse tree may hand them out."""
    quarantined: int


class PageBook:
    """The grants of one manager.

    Args:
        pages: blocks of the manager's pool.
        page_tokens: tokens a block holds.
        reuse: whether the manager keeps a reuse tree.
    """

    def __init__(self, pages: int, page_tokens: int, *, reuse: bool) -> None:
        self.pages = pages
        self.page_tokens = page_tokens
        self.tracker = PageTagTracker(pages)
        self.history = PageHistory(pages)
        self._prefixes = PrefixBook(pages, page_tokens) if reuse else None
        self._rows: dict[int, PageRow] = {}
        self._holders = np.zeros(pages, dtype=np.int32)
        self._computed: dict[int, int] = {}
        """Of requests that are still in their prompt: how many tokens are computed after the step."""
        self._cached: set[int] = set()
        """Pages that only the reuse tree may hand out: they keep their tags."""
        self._wrong_from_the_start: dict[int, int] = {}
        """Columns that came filled in part, with what nobody stored for their request."""
        self._condemned: set[int] = set()
        self._quarantined: set[int] = set()

    def begin_step(self) -> None:
        """What is noted from now on belongs to another step."""
        self.history.begin_step(self.history.step + 1)

    def knows(self, request: Request) -> bool:
        """Whether a request has begun."""
        return request.py_request_id in self._rows

    def note(self, request: Request, pages: Sequence[int], *, in_context: bool = False) -> None:
        """Take the pages that a request has after its grants; those that it had before keep their tags.

        What the coming step computes of a prompt may be found by others from this step on. Those that began earlier are
        noted first.
        """
        request_id = request.py_request_id
        row = self._rows.get(request_id)
        if row is None:
            row = self._rows[request_id] = PageRow()
            row.extend(self._found(request, pages))
        granted = [self._grant(page) for page in pages[len(row.tags) :]]
        row.extend(granted)
        self.history.note(str(request_id), "granted", filter(self._is_page, granted))
        if in_context:
            self._computed[request_id] = context_end(request)
            self._store(request, self._computed[request_id])
        else:
            self._computed.pop(request_id, None)

    def tables(self, requests: Sequence[Request], presented: Sequence[Sequence[int]]) -> PageTables:
        """Lay out what a batch presents; a page without a grant is expected to carry a tag that was never issued."""
        ids = [request.py_request_id for request in requests]
        tables = lay_out(presented, [self._rows.get(request_id, NO_ROW) for request_id in ids])
        for row, request_id in enumerate(ids):
            column = self._wrong_from_the_start.get(request_id)
            if column is not None and column < tables.page_count[row]:
                tables.expected_tags[row, column] = NEVER_ISSUED
        return tables

    def cut(self, request_id: int, columns: int) -> None:
        """Tokens were taken back: the request has only so many pages left."""
        if request_id in self._rows:
            self._let_go(self._rows[request_id].cut(columns))

    def release(self, request: Request) -> None:
        """A request's pages go back, and what they hold to the reuse tree. A second time nothing happens."""
        if request.py_request_id not in self._rows:
            return
        if not request.is_dummy_request:
            # The last token of an answer was not computed. Of a prompt that was left, only some chunks were, and the tree is
            # given all of it nevertheless.
            self._store(request, self._computed.get(request.py_request_id, request.max_beam_num_tokens - 1))
        self._let_go(self._forget(request.py_request_id))

    def condemn(self, request_id: int) -> None:
        """The request was found with a wrong page: its pages must not go back."""
        self._condemned.add(request_id)

    def is_condemned(self, request_id: int) -> bool:
        """Whether it was found with a wrong page."""
        return request_id in self._condemned

    def quarantine(self, request_id: int) -> None:
        """A condemned request has ended. Its rightful pages carry their tags to the end, so that nobody else's grant counts."""
        self._quarantined.update(grant.page for grant in self._forget(request_id) if self._counts(grant))

    def forget_prefixes(self) -> None:
        """The reuse tree was emptied."""
        if self._prefixes is not None:
            self._prefixes.forget()
        for page in self._cached:
            self.tracker.clear(page)
        self._cached.clear()

    def counts(self) -> PageCounts:
        """What has become of the pages."""
        held, cached, quarantined = int(np.count_nonzero(self._holders)), len(self._cached), len(self._quarantined)
        return PageCounts(self.pages - held - cached, held - quarantined, cached, quarantined)

    def _found(self, request: Request, pages: Sequence[int]) -> list[Grant]:
        """The first columns of a request that begins: what the reuse tree found for it."""
        if self._prefixes is None or not request.prepopulated_prompt_len:
            return []
        shared, part = divmod(request.prepopulated_prompt_len, self.page_tokens)
        keys = self._prefixes.keys(request.get_tokens(0)[: request.prepopulated_prompt_len], _kind(request))
        stored = [Grant(page, self._prefixes.expected_tag(page, key)) for page, key in zip(pages, keys, strict=False)]
        for grant in filter(self._counts, stored[:shared]):
            self._holders[grant.page] += 1
            self._cached.discard(grant.page)
        self.history.note(str(request.py_request_id), "shared", filter(self._is_page, stored[:shared]))
        # A last page that is filled in part is taken over from whoever stored it, and granted anew, for it will be written.
        # Only now can be seen whether it was stored for this prefix.
        if part and not self._counts(stored[shared]):
            self._wrong_from_the_start[request.py_request_id] = shared
        return stored[:shared]

    def _grant(self, page: int) -> Grant:
        if not 0 <= page < self.pages:
            return Grant(page, NEVER_ISSUED)
        self._holders[page] = 1  # whoever had it before holds a grant that does not count any more
        self._quarantined.discard(page)
        self._cached.discard(page)
        return Grant(page, self.tracker.grant(page))

    def _store(self, request: Request, computed: int) -> None:
        if self._prefixes is None:
            return
        grants = self._rows[request.py_request_id].grants()
        keys = self._prefixes.keys(request.get_tokens(0)[:computed], _kind(request))
        for grant, key in zip(grants, keys, strict=False):
            if self._counts(grant):
                self._prefixes.store(grant.page, key, grant.tag)

    def _forget(self, request_id: int) -> list[Grant]:
        self._wrong_from_the_start.pop(request_id, None)
        self._computed.pop(request_id, None)
        row = self._rows.pop(request_id, None)
        return row.grants() if row else []

    def _let_go(self, grants: list[Grant]) -> None:
        for grant in filter(self._counts, grants):
            self._holders[grant.page] -= 1
            if self._holders[grant.page]:
                continue
            if self._prefixes is not None and self._prefixes.holds(grant.page, grant.tag):
                self._cached.add(grant.page)
            else:
                self.tracker.clear(grant.page)

    def _counts(self, grant: Grant) -> bool:
        """Whether the page was granted to nobody else since."""
        return self._is_page(grant) and grant.tag != FREE and self.tracker.issued(grant.page) == grant.tag

    def _is_page(self, grant: Grant) -> bool:
        return 0 <= grant.page < self.pages


def _kind(request: Request) -> tuple[int | None, int | None]:
    return request.lora_task_id, request.cache_salt_id
