"""The kinds of faults that the drill puts into allocator, scheduler, tables and pages."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["KINDS", "FaultKind", "FaultName"]

FaultName = Literal[
    "stale_grant",
    "stale_table_cell",
    "stale_tail",
    "freed_early",
    "granted_twice",
    "rows_swapped",
    "tag_update_lost",
    "tag_table_late",
    "wrong_page_count",
    "reference_count",
    "grant_replaced",
    "late_write",
    "rows_permuted",
]


class FaultKind(NamedTuple):
    """A way in which a request comes to a page that is not its own, or not as it was."""

    name: FaultName
    what: str
    seen_by: Literal["tags", "content"]
    """What can tell: the tags alone, or only a checksum of what the page holds."""

    @property
    def is_sampled(self) -> bool:
        """Whether only the checksums of a page tell. That a page was never written under a tag is always seen."""
        return self.seen_by == "content" and self.name != "grant_replaced"


KINDS: dict[FaultName, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind("stale_grant", "the scheduler keeps a grant that was withdrawn", "tags"),
        FaultKind("stale_table_cell", "a cell of the device's page table names another page", "tags"),
        FaultKind("stale_tail", "the last cell of a row is still what it was for whoever had the row before", "tags"),
        FaultKind("freed_early", "the allocator frees a page that is still held", "tags"),
        FaultKind("granted_twice", "a page that is held is on the free list as well", "tags"),
        FaultKind("rows_swapped", "two requests have each other's row of the device's page table", "tags"),
        FaultKind("tag_update_lost", "a grant does not reach the tag table", "tags"),
        FaultKind("tag_table_late", "the guard is given the tag table of the step before", "tags"),
        FaultKind("wrong_page_count", "the device's page count of a row is another", "tags"),
        FaultKind("reference_count", "a shared page counts one holder too few", "tags"),
        FaultKind("grant_replaced", "the scheduler loses a grant and takes another page in its place", "content"),
        FaultKind("late_write", "a former holder writes into a page that was granted again", "content"),
        FaultKind("rows_permuted", "two tokens' rows change places within a page", "content"),
    )
}
