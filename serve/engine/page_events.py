"""What is told when a page is not a request's own any more, or not what was written into it.

TensorRT-LLM's ranks import this too: it knows nothing of our loop.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from roundhouse.errors import RequestError

__all__ = ["Holder", "IntegrityEvent", "MismatchKind", "mismatch_error"]

MismatchKind = Literal["tag", "count", "content"]
"""``tag``: the page carries another tag; ``count``: the table's page count is impossible or leaves pages unchecked;
``content``: the page no longer holds what its holder wrote."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who got a page."""

    request_id: str
    tag: int
    """What was issued with it."""
    step: int
    how: Literal["granted", "shared"]


class IntegrityEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One row that was stopped before its step.

    ``event`` is named in the error that the client gets, ``<request_id>/<step>/<answer>``.
    """

    event: str
    time: float
    """Unix time in seconds."""
    kind: MismatchKind
    request_id: str
    answer: int
    """Which of the request's answers, from 0."""
    step: int
    """Of the engine loop, from 1."""
    column: int
    """Of the page table: the position in the sequence, divided by the tokens of a page."""
    page: int | None
    """None: the table has no such column."""
    expected_tag: int
    found_tag: int | None
    """None: there is no such page."""
    last_holders: list[Holder]
    """Who got the page last, the latest first, as far as is remembered."""
    engine: str = ""
    """The engine's id, where events of several engines are kept together."""

    def __str__(self) -> str:
        where = f"request {self.request_id}, step {self.step}: page {self.kind} mismatch, column {self.column}"
        if self.page is None:
            return f"{where} (integrity event {self.event})"
        found = "no such page" if self.found_tag is None else str(self.found_tag)
        holders = ", ".join(f"{each.request_id} ({each.how}, tag {each.tag}, step {each.step})" for each in self.last_holders)
        told = f"page {self.page}, expected tag {self.expected_tag}, found {found}; last holders: {holders or 'not known'}"
        return f"{where}, {told} (integrity event {self.event})"


def mismatch_error(event: IntegrityEvent) -> RequestError:
    """What the client is told. Who else held the page is none of its business."""
    if event.kind == "content":
        what = f"the KV page at column {event.column} no longer holds what was written for this request"
        return RequestError("page_content_mismatch", f"{what}; nothing was computed from it (integrity event {event.event})")
    if event.kind == "count":
        what = f"the table of this request's KV pages does not have as many as it needs (column {event.column})"
    else:
        what = f"the KV page at column {event.column} no longer carries this request's tag"
    return RequestError("page_tag_mismatch", f"{what}; nothing was computed from it (integrity event {event.event})")
