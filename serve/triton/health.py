"""Whether tokens come out of the engine process, judged from what it reports.

A process that is there is not enough: a step may hang, and a scheduler that is stuck would report for ever that requests
wait. Triton's own readiness knows none of this.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ..engine.status import Status

__all__ = ["DOWN", "STUCK", "UNGUARDED", "TokenWatch", "silent"]

_LONGEST_SILENCE_S = 30.0
"""Longer than any one step should take: the engine process reports between steps."""
_LONGEST_STANDSTILL_S = 30.0
"""While requests are there, a step is never further away than this."""
_LONGEST_WITHOUT_TOKEN_S = 300.0
"""Steps may run as long as this without a token: very long prompts."""

DOWN = "the engine process is down"
STUCK = "requests are there, but no token comes out of the engine"
UNGUARDED = "steps ran without the page check, which is on; the engine must be restarted"


def silent(seconds: float) -> str | None:
    """What to say of an engine process whose last report is so many seconds old; None when that is nothing to say."""
    return f"the engine process has not reported for {seconds:.0f} s" if seconds > _LONGEST_SILENCE_S else None


class TokenWatch:
    """Watches one engine process. May be used from several threads.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._up = False
        self._guard = "off"
        """What the settings asked for."""
        self._unguarded = False
        self._steps = self._tokens = self._checks = 0
        self._reported = self._stepped = self._spoke = 0.0
        """When it last reported, took a step and gave a token; idle time counts as all of them."""

    def begin(self, guard: str) -> None:
        """The process takes requests from now on.

        Args:
            guard: what it was asked to check before every step: off, tags or tags+content.
        """
        self._reset(up=True, guard=guard)

    def end(self) -> None:
        """The process is gone."""
        self._reset(up=False, guard="off")

    def _reset(self, *, up: bool, guard: str) -> None:
        with self._lock:
            self._up = up
            self._guard = guard
            self._unguarded = False
            self._steps = self._tokens = self._checks = 0
            self._reported = self._stepped = self._spoke = self._clock()

    def take(self, status: Status) -> None:
        """Take a report."""
        with self._lock:
            now = self._reported = self._clock()
            idle = not (status.running or status.waiting)
            if idle or status.steps != self._steps:
                self._stepped = now
            if idle or status.tokens_out != self._tokens:
                self._spoke = now
            # Every step is checked once at least, and as was asked for, whatever the loop takes itself for. Who found out once
            # that it was not so must not forget it.
            steps, checks = status.steps - self._steps, status.tag_checks - self._checks
            if self._guard != "off" and steps > 0 and (status.guard != self._guard or checks < steps):
                self._unguarded = True
            self._steps, self._tokens, self._checks = status.steps, status.tokens_out, status.tag_checks

    @property
    def stuck(self) -> bool:
        """Whether requests have been there for long and nothing came out, by the last report."""
        with self._lock:
            return self._stuck()

    @property
    def unguarded(self) -> bool:
        """Whether a step ran without the page check that the settings ask for."""
        with self._lock:
            return self._unguarded

    def problem(self) -> str | None:
        """Why a request would not be answered now, or None."""
        with self._lock:
            if not self._up:
                return DOWN
            if self._unguarded:
                return UNGUARDED
            return STUCK if self._stuck() else silent(self._clock() - self._reported)

    def _stuck(self) -> bool:
        stands_still = self._reported - self._stepped > _LONGEST_STANDSTILL_S
        return stands_still or self._reported - self._spoke > _LONGEST_WITHOUT_TOKEN_S
