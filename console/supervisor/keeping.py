"""Keeps one deployment running: started, started again when it ends by itself, and ended when somebody says so."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from roundhouse.errors import RoundhouseError
from roundhouse.serve.addresses import Endpoints

from .folder import SupervisorWord

__all__ = ["Keeper", "Served"]

_LOOK_S = 0.5
_LONGEST_PAUSE_S = 30.0
_MOST_FAILURES = 5
_WITHIN_S = 600.0


class Served(Protocol):
    """What is kept running: a deployment of either kind."""

    @property
    def endpoints(self) -> Endpoints: ...

    def start(self, stop: threading.Event) -> bool: ...

    def require_running(self) -> None: ...

    def close(self, grace_s: float) -> None: ...


@dataclass
class Keeper:
    """Keeps it.

    A first start that fails is the end: the same would happen again, and somebody waits to be told why. What ended after it had
    been ready is started again, on the ports that it had, after a pause that grows; five ends within ten minutes are the end.
    """

    make: Callable[[Endpoints | None], Served]
    """Makes it anew; given where it answered before, if it did."""
    tell: Callable[..., None]
    """Gets the state's word, and as keywords what else there is to say: endpoints, restarts, reason, hint."""
    grace_s: Callable[[], float]
    """How long running requests may go on at the end; asked only then."""
    clock: Callable[[], float] = time.monotonic
    _failures: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_FAILURES), init=False)
    _endpoints: Endpoints | None = field(default=None, init=False)
    _restarts: int = field(default=0, init=False)

    def keep(self, stop: threading.Event) -> bool:
        """Run it until ``stop`` is set or it cannot be kept; returns whether it ended because it was told to."""
        self._say("starting")
        while True:
            try:
                self._run(stop)
                return True
            except Exception as error:  # whatever it is, its last word must say so
                if not isinstance(error, RoundhouseError):
                    traceback.print_exc()
                if self._is_the_end(error):
                    return False
            if stop.wait(self._pause_s):
                self._say("stopped")
                return True

    def _run(self, stop: threading.Event) -> None:
        """One run, until it is told to stop.

        Raises:
            Exception: it could not start, or ended by itself; nothing is left of it.
        """
        served = self.make(self._endpoints)
        try:
            if served.start(stop):
                self._endpoints = served.endpoints
                self._say("ready")
                while not stop.wait(_LOOK_S):
                    served.require_running()
        except BaseException:
            with suppress(RoundhouseError):  # what went wrong first is what counts
                served.close(0.0)
            raise
        self._say("stopping")
        try:
            served.close(self.grace_s())
        except RoundhouseError as error:
            self._say("stopped", reason=error.message, hint=error.hint)
        else:
            self._say("stopped")

    def _is_the_end(self, error: Exception) -> bool:
        """Note a failure, and say it."""
        reason = error.message if isinstance(error, RoundhouseError) else f"the supervisor failed: {error!r}"
        hint = error.hint if isinstance(error, RoundhouseError) else None
        if self._endpoints is None:
            self._say("failed", reason=reason, hint=hint)
            return True
        self._failures.append(self.clock())
        if len(self._failures) == _MOST_FAILURES and self._failures[-1] - self._failures[0] < _WITHIN_S:
            often = f"it ended {_MOST_FAILURES} times within {_WITHIN_S / 60:.0f} minutes; the last time: {reason}"
            self._say("failed", reason=often, hint=hint)
            return True
        self._restarts += 1
        self._say("restarting", reason=reason, hint=hint)
        return False

    @property
    def _pause_s(self) -> float:
        """1, 2, 4, 8 s … for failures of the last ten minutes."""
        recent = sum(1 for at in self._failures if self.clock() - at < _WITHIN_S)
        return float(min(_LONGEST_PAUSE_S, 2.0 ** (recent - 1)))

    def _say(self, word: SupervisorWord, **more: Any) -> None:
        endpoints = None if self._endpoints is None else asdict(self._endpoints)
        self.tell(word, endpoints=endpoints, restarts=self._restarts, **more)
