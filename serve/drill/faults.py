"""How each kind of fault is put in. What is damaged is drawn at random from what is live; nothing is told to the guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..engine.sequence import Sequence
from .kinds import FaultName
from .scene import Scene, TablesAhead

__all__ = ["Fault", "between_steps", "into_tables"]


@dataclass(eq=False)
class Fault:
    """One fault, and what has come of it. Steps are the loop's."""

    pages: set[int] = field(default_factory=set)
    requests: set[str] = field(default_factory=set)
    """Whom it can hit: whoever holds one of the pages, and these requests."""
    effective: int | None = None
    """The first step in which somebody was about to run with it."""
    found: int | None = None
    """The first step before which somebody was stopped for it."""
    ran: int = 0
    """Rows that ran on a page that was not their own, or not as it was written."""
    leaked: int = 0
    """Tokens that came out of whoever did."""

    def hits(self, sequence: Sequence) -> bool:
        """Whether what is wrong with a sequence may be this fault's doing."""
        return sequence.request_id in self.requests or any(grant.page in self.pages for grant in sequence.grants)


def between_steps(kind: FaultName, scene: Scene) -> Fault | None:
    """Put a fault into books or pages; None when nobody is there whom it could hit, or the kind is one of tables."""
    damage = _BETWEEN_STEPS.get(kind)
    return None if damage is None else damage(scene)


def into_tables(kind: FaultName, scene: Scene, ahead: TablesAhead) -> Fault | None:
    """Put a fault into the tables of the step ahead; None when it cannot be, or the kind is one of books or pages."""
    damage = _INTO_TABLES.get(kind)
    return None if damage is None else damage(scene, ahead)


def _freed_early(scene: Scene) -> Fault | None:
    grant = scene.a_grant()
    if grant is None:
        return None
    scene.pool.free_early(grant)
    return Fault(pages={grant.page})


def _granted_twice(scene: Scene) -> Fault | None:
    grant = scene.a_grant()
    if grant is None:
        return None
    scene.pool.grant_again(grant.page)
    return Fault(pages={grant.page})


def _reference_count(scene: Scene) -> Fault | None:
    """The page is freed when its last holder but one lets go: one of them leaves at once."""
    shared = scene.a_shared_grant()
    if shared is None:
        return None
    grant, holders = shared
    scene.pool.miscount(grant.page)
    if len(holders) > 1:
        scene.cancel(scene.draw.choice(holders).request_id)
    return Fault(pages={grant.page})


def _tag_update_lost(scene: Scene) -> Fault | None:
    fault = Fault()
    scene.tracker.lose_next_update(fault.pages)
    return fault


def _late_write(scene: Scene) -> Fault | None:
    written = scene.a_written_page()
    if written is None:
        return None
    page, tokens = written
    scene.pages.overwrite(page, scene.draw.randrange(tokens), scene.draw.randrange(scene.pool.pages))
    return Fault(pages={page})


def _rows_permuted(scene: Scene) -> Fault | None:
    written = scene.a_written_page()
    if written is None or written[1] < 2:
        return None
    page, tokens = written
    scene.pages.swap(page, *scene.draw.sample(range(tokens), 2))
    return Fault(pages={page})


def _stale_grant(scene: Scene) -> Fault | None:
    """In the scheduler's books: a sequence holds a grant that was withdrawn, in the place of its own."""
    sequence = scene.a_sequence()
    if sequence is None:
        return None
    sequence.grants[scene.draw.randrange(len(sequence.grants))] = scene.a_withdrawn_grant()
    return Fault(requests={sequence.request_id})


def _grant_replaced(scene: Scene) -> Fault | None:
    """In the scheduler's books: a newly granted page, tag and all, in the place of one that was written."""
    sequence = scene.a_sequence()
    columns = 0 if sequence is None else -(-sequence.computed // scene.pages.page_tokens)
    granted = scene.pool.grant(1) if columns else None
    if sequence is None or not granted:
        return None
    sequence.grants[scene.draw.randrange(columns)] = granted[0]
    return Fault(requests={sequence.request_id})


def _stale_table_cell(scene: Scene, ahead: TablesAhead) -> Fault | None:
    row = scene.draw.randrange(len(ahead.batch.runs))
    column = scene.draw.randrange(int(ahead.batch.page_count[row]))
    return _other_page(ahead, row, column, scene.draw.randrange(scene.pool.pages))


def _stale_tail(scene: Scene, ahead: TablesAhead) -> Fault | None:
    """The row's last cell is what it was in the step before."""
    row, before = scene.draw.randrange(len(ahead.batch.runs)), scene.last_table
    column = int(ahead.batch.page_count[row]) - 1
    if before is None or row >= before.shape[0] or column >= before.shape[1]:
        return None
    return _other_page(ahead, row, column, int(before[row, column]))


def _other_page(ahead: TablesAhead, row: int, column: int, page: int) -> Fault | None:
    if page == int(ahead.batch.page_table[row, column]):
        return None
    table = ahead.prepared.page_table.clone()
    table[row, column] = page
    ahead.prepared = replace(ahead.prepared, page_table=table)
    return Fault(requests={ahead.batch.runs[row][0].request_id})


def _rows_swapped(scene: Scene, ahead: TablesAhead) -> Fault | None:
    rows = len(ahead.batch.runs)
    if rows < 2:
        return None
    one, other = scene.draw.sample(range(rows), 2)
    if np.array_equal(ahead.batch.page_table[one], ahead.batch.page_table[other]):
        return None
    table = ahead.prepared.page_table.clone()
    table[[one, other]] = ahead.prepared.page_table[[other, one]]
    ahead.prepared = replace(ahead.prepared, page_table=table)
    return Fault(requests={ahead.batch.runs[row][0].request_id for row in (one, other)})


def _wrong_page_count(scene: Scene, ahead: TablesAhead) -> Fault | None:
    row, columns = scene.draw.randrange(len(ahead.batch.runs)), ahead.batch.page_table.shape[1]
    count = int(ahead.batch.page_count[row])
    counts = ahead.prepared.page_count.clone()
    counts[row] = scene.draw.choice((-1, 0, count - 1, count + 1, columns + 1, 2**31 - 1))
    ahead.prepared = replace(ahead.prepared, page_count=counts)
    return Fault(requests={ahead.batch.runs[row][0].request_id})


def _tag_table_late(scene: Scene, ahead: TablesAhead) -> Fault | None:
    """The guard gets the table of the step before: whoever was granted a page since has a tag that is not in it."""
    before, batch = scene.last_tags, ahead.batch
    if before is None:
        return None
    late = ((before[batch.page_table] != batch.expected_tags) & (batch.page_table >= 0)).any(axis=1)
    if not late.any():
        return None
    scene.tracker.show(before)
    return Fault(requests={batch.runs[int(row)][0].request_id for row in np.flatnonzero(late)})


_BETWEEN_STEPS: dict[FaultName, Callable[[Scene], Fault | None]] = {
    "stale_grant": _stale_grant,
    "freed_early": _freed_early,
    "granted_twice": _granted_twice,
    "reference_count": _reference_count,
    "tag_update_lost": _tag_update_lost,
    "grant_replaced": _grant_replaced,
    "late_write": _late_write,
    "rows_permuted": _rows_permuted,
}
_INTO_TABLES: dict[FaultName, Callable[[Scene, TablesAhead], Fault | None]] = {
    "stale_table_cell": _stale_table_cell,
    "stale_tail": _stale_tail,
    "rows_swapped": _rows_swapped,
    "wrong_page_count": _wrong_page_count,
    "tag_table_late": _tag_table_late,
}
