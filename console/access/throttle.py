"""Slows down who tries passwords: a few tries at once, then one every so often, for each account and each address."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Throttle"]

_MOST_KEYS = 10_000


class Throttle:
    """A bucket of tries for each key, which fills again slowly. Only failures take from it.

    Args:
        tries: how many failures are let through at once.
        refill_s: seconds until one more is.
        clock: seconds, monotonic.
    """

    def __init__(self, tries: int = 8, refill_s: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._tries = tries
        self._refill_s = refill_s
        self._clock = clock
        self._lock = threading.Lock()
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tries used, and when that was so, by key; the one used longest ago is first."""

    def wait_s(self, *keys: str) -> float:
        """Seconds until a try with these keys is let through; 0: now."""
        with self._lock:
            over = max(self._now_used(key) for key in keys) - (self._tries - 1)
            return max(0.0, over * self._refill_s)

    def failed(self, *keys: str) -> None:
        """A try with these keys failed."""
        with self._lock:
            for key in keys:
                self._used[key] = (self._now_used(key) + 1, self._clock())
                self._used.move_to_end(key)
            while len(self._used) > _MOST_KEYS:
                self._used.popitem(last=False)

    def succeeded(self, *keys: str) -> None:
        """A try with these keys succeeded: they begin anew."""
        with self._lock:
            for key in keys:
                self._used.pop(key, None)

    def _now_used(self, key: str) -> float:
        used, at = self._used.get(key, (0.0, self._clock()))
        return max(0.0, used - (self._clock() - at) / self._refill_s)
