"""An integrity event for somebody who does not know the code. ``docs/page-tags.md`` says the same at length."""

from __future__ import annotations

from dataclasses import dataclass

from .records import EventRow

__all__ = ["Explanation", "HolderLine", "explain"]

_DONE = (
    "The request ended with an error before anything was computed from the page. A page that only this request rightfully "
    "held is quarantined: out of use until the engine is started again. The other requests went on with the same tokens as "
    "without the fault."
)
_DONE_COUNT = "The request ended with an error before anything was computed. The other requests of the batch went on."


@dataclass(frozen=True)
class HolderLine:
    """Somebody who got the page."""

    request_id: str
    is_stopped: bool
    """Whether it is the request that was stopped."""
    how: str
    tag: int
    step: int


@dataclass(frozen=True)
class Explanation:
    """What an event says."""

    what: str
    """In a few words."""
    expected: str
    found: str
    holders: tuple[HolderLine, ...]
    """The latest first."""
    reading: str
    """What it looks like."""
    done: str


def explain(event: EventRow) -> Explanation:
    """Say it in words."""
    holders = tuple(
        HolderLine(each["request_id"], each["request_id"] == event.request_id, each["how"], each["tag"], each["step"])
        for each in event.last_holders
    )
    what = {
        "tag": "a page carried another tag than was issued with it",
        "count": "the page table counted its pages wrongly",
        "content": "a page did not hold what was written into it",
    }.get(event.kind, event.kind)
    done = _DONE_COUNT if event.kind == "count" else _DONE
    return Explanation(what, _expected(event), _found(event), holders, _reading(event, holders), done)


def _expected(event: EventRow) -> str:
    if event.kind == "count":
        return "a count of pages that covers every token that the step reads, and no more than the table has"
    where = "its page table" if event.page is None else f"page {event.page:,}, the request's page {event.column + 1:,},"
    if event.kind == "content":
        return f"{where} holding what was written under tag {event.expected_tag}"
    return f"{where} carrying tag {event.expected_tag}"


def _found(event: EventRow) -> str:
    if event.kind == "count":
        return f"a count that is impossible, or leaves pages unchecked, seen at the request's page {event.column + 1:,}"
    if event.page is None:
        return f"no column {event.column} in the table"
    if event.kind == "content":
        return "the right tag, and other bytes than were written, or a page that was never written under this tag"
    if event.found_tag is None:
        return "there is no such page in the pool"
    return "tag 0: nobody holds the page" if event.found_tag == 0 else f"tag {event.found_tag}"


def _reading(event: EventRow, holders: tuple[HolderLine, ...]) -> str:
    if event.kind == "count":
        return (
            "The device's page count of this row was not the scheduler's: a table that was copied too late, or written wrongly."
        )
    if event.kind == "content":
        earlier = next((each for each in holders if not each.is_stopped and each.tag != event.expected_tag), None)
        if earlier is not None:
            return f"Of a late write, request {earlier.request_id}, which held the page before, is the suspect."
        return "Something wrote into the page besides its holder, or its holder's write never came."
    if event.page is None or event.found_tag is None:
        return "The device's page table names what is not there: it was written wrongly, or read before it was written."
    own = next((each for each in holders if each.is_stopped and each.tag == event.expected_tag), None)
    latest = holders[0] if holders else None
    if own is None:
        return "The request never had this page under that tag, or the page has had four other holders since."
    if event.found_tag == 0 and own.step == event.step:
        return "It was granted in this very step, and the grant never reached the tag table."
    if latest is not None and not latest.is_stopped:
        return (
            f"While the request still held the page, {latest.request_id} was {latest.how} it in step {latest.step:,}: "
            "somebody freed it too early, or granted it twice."
        )
    return (
        "The page was freed under the request, and nobody has it yet."
        if event.found_tag == 0
        else "The page's tag was changed."
    )
