"""What the engine process does once its loop stands: take messages, step, send outputs, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from ..engine.page_holders import PageHolders
from ..engine.request import Output, Request
from ..engine.status import Status
from .messages import Cancel, FromClient, FromEngine, Outputs, Pages

__all__ = ["Inbox", "Loop", "Service"]

STATUS_PERIOD_S = 1.0


class Loop(Protocol):
    """The part of the engine loop that this process drives."""

    @property
    def has_work(self) -> bool: ...

    def submit(self, request: Request) -> None: ...

    def cancel(self, request_id: str) -> None: ...

    def step(self) -> Sequence[Output]: ...

    def status(self) -> Status: ...

    def page_holders(self) -> PageHolders: ...

    def check_integrity(self) -> None: ...


class Inbox(Protocol):
    """Where messages arrive."""

    def take(self, timeout_s: float) -> FromClient | None:
        """The next message, or None when none arrives within ``timeout_s`` seconds (0: do not wait)."""
        ...


class Service:
    """Drives one loop from one thread.

    Args:
        loop: the engine loop; nothing else touches it.
        inbox: where requests and cancellations arrive.
        send: takes outputs and status reports. Must not block.
    """

    def __init__(self, loop: Loop, inbox: Inbox, send: Callable[[FromEngine], None]) -> None:
        self._loop = loop
        self._inbox = inbox
        self._send = send
        self._was_busy = False
        self._next_status = 0.0

    def run(self) -> None:
        """Serve until the process ends: whoever owns it closes its standard input."""
        while True:
            self.turn()

    def turn(self) -> None:
        """Take what has arrived, then step once, or wait for a message when there is nothing to do.

        Whoever asked about pages hears it before the step, once, however often that was asked.
        """
        self._take_all(wait_s=0.0 if self._loop.has_work or self._was_busy else STATUS_PERIOD_S)
        if self._loop.has_work:
            outputs = list(self._loop.step())
            if outputs:
                self._send(Outputs(outputs))
            self._was_busy = True
        elif self._was_busy:
            self._was_busy = False
            self._next_status = 0.0  # pages were just given back: say so now
            self._loop.check_integrity()
        now = time.monotonic()
        if now >= self._next_status:
            self._next_status = now + STATUS_PERIOD_S
            self._send(self._loop.status())

    def _take_all(self, *, wait_s: float) -> None:
        pages_asked = False
        message = self._inbox.take(wait_s)
        while message is not None:
            if isinstance(message, Cancel):
                self._loop.cancel(message.request_id)
            elif isinstance(message, Pages):
                pages_asked = True
            else:
                self._loop.submit(message)
            message = self._inbox.take(0.0)
        if pages_asked:
            self._send(self._loop.page_holders())
