"""Buckets of tries: a few at once, then one every so often, for each key."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Throttle"]

_MOST_KEYS = 10_000


class Throttle:
    """A bucket of tries for each key, which fills again slowly.

    A try is taken when it begins, not when it has failed: who begins a hundred at once gets no more than who waits for each
    answer. One that succeeds is given back.

    Args:
        tries: how many are let through at once.
        refill_s: seconds until one more is.
        clock: seconds, monotonic.
        most_keys: how many buckets are kept. When there are more, those go that are nearest to full: who wants to have one
            forgotten would have to empty as many others as far.
    """

    def __init__(
        self,
        tries: int,
        refill_s: float,
        clock: Callable[[], float] = time.monotonic,
        most_keys: int = _MOST_KEYS,
    ) -> None:
        self._tries = tries
        self._refill_s = refill_s
        self._clock = clock
        self._most_keys = most_keys
        self._lock = threading.Lock()
        self._used: dict[str, tuple[float, float]] = {}
        """Tries used, and when that was so, by key."""

    def take(self, key: str) -> float:
        """Take a try; returns the seconds to wait, and takes nothing, where there is none. 0: it may be tried now."""
        with self._lock:
            now = self._clock()
            used = self._used_at(key, now)
            if (over := used - (self._tries - 1)) > 0:
                return over * self._refill_s
            self._used[key] = (used + 1, now)
            if len(self._used) > self._most_keys:
                self._forget_fullest(now)
            return 0.0

    def give_back(self, key: str) -> None:
        """A try turned out to be no guess."""
        with self._lock:
            now = self._clock()
            self._used[key] = (max(0.0, self._used_at(key, now) - 1), now)

    def forget(self, key: str) -> None:
        """Begin anew with this key."""
        with self._lock:
            self._used.pop(key, None)

    def _used_at(self, key: str, now: float) -> float:
        used, at = self._used.get(key, (0.0, now))
        return max(0.0, used - (now - at) / self._refill_s)

    def _forget_fullest(self, now: float) -> None:
        """Make room for a tenth, so that this is seldom done."""
        by_use = sorted(self._used, key=lambda key: self._used_at(key, now))
        for key in by_use[: max(1, self._most_keys // 10)]:
            del self._used[key]
