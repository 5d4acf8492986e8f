"""Server-sent events: what changes is told as it changes, and a browser that comes back goes on where it was."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from .who import may_go_on

__all__ = ["Event", "EventStream", "Look", "follow"]

_EVERY_S = 1.0
_QUIET_S = 15.0
_LONGEST_S = 300.0
_MOST_DIGITS = 16
"""Of an id: as microseconds, a moment that Python still has."""


@dataclass(frozen=True)
class Event:
    """One event."""

    data: object
    """Sent as JSON."""
    id: int | None = None
    """A browser that comes back says the last one that it got."""
    name: str | None = None
    """None: ``message``, which pages listen to without naming it."""

    @property
    def encoded(self) -> str:
        """As it is sent. JSON has no line break of its own."""
        head = "" if self.name is None else f"event: {self.name}\n"
        head += "" if self.id is None else f"id: {self.id}\n"
        return f"{head}data: {json.dumps(self.data, separators=(',', ':'))}\n\n"


@dataclass(frozen=True)
class Look:
    """What there was to tell at one moment."""

    events: Sequence[Event]
    ended: bool = False
    """Whether nothing more will come."""


class EventStream(StreamingResponse):
    """Events as they come; ends at once when whoever listens is gone."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str]) -> None:
        super().__init__(events, headers={"cache-control": "no-store", "x-accel-buffering": "no"})


def follow(request: Request, look: Callable[[int], Look]) -> EventStream:
    """Look again and again, and tell what is new; for some minutes, after which the browser comes back by itself.

    It ends soon after the login or token with which it was asked for does.

    Args:
        request: what was asked; it says after which event to go on.
        look: called in a thread with the id of the last event that was told; must hold nothing when it returns.
    """
    return EventStream(_following(look, _last_seen(request), partial(may_go_on, request)))


def _last_seen(request: Request) -> int:
    """The id of the last event that a browser has, or what the page says in ``?after=``; 0 when it has none."""
    said = request.headers.get("last-event-id") or request.query_params.get("after") or ""
    return int(said) if said.isascii() and said.isdigit() and len(said) <= _MOST_DIGITS else 0


async def _following(look: Callable[[int], Look], after: int, may_go_on: Callable[[], bool]) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    end = time.monotonic() + _LONGEST_S
    told = asked = time.monotonic()
    while time.monotonic() < end:
        if time.monotonic() - asked > _QUIET_S:
            asked = time.monotonic()
            if not await run_in_threadpool(may_go_on):
                return
        found = await run_in_threadpool(look, after)
        for event in found.events:
            after = event.id if event.id is not None else after
            yield event.encoded
        if found.ended:
            yield Event({}, name="end").encoded
            return
        if found.events:
            told = time.monotonic()
            continue  # a long log comes in several looks
        if time.monotonic() - told > _QUIET_S:  # proxies close what is silent
            told = time.monotonic()
            yield ":\n\n"
        await asyncio.sleep(_EVERY_S)
