"""Things that a worker does again and again, each in a thread of its own: a slow one holds up no other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

__all__ = ["Faults", "Periodic"]

_log = logging.getLogger(__name__)


class Faults:
    """Logs what goes wrong in something that is done again and again: each kind of fault once, until it goes well again.

    Args:
        what: is done, in words.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._known: set[type[Exception]] = set()

    def well(self) -> None:
        """It went well."""
        if self._known:
            _log.info("%s: works again", self._what)
            self._known.clear()

    def add(self, error: Exception) -> None:
        """It went wrong."""
        if type(error) in self._known:
            return
        self._known.add(type(error))
        if isinstance(error, SQLAlchemyError):  # the database is away: a traceback would tell nothing more
            _log.warning("%s: %s; it is tried again", self._what, str(error).partition("\n")[0])
        else:
            _log.error("%s: failed, and is tried again", self._what, exc_info=error)


class Periodic(threading.Thread):
    """Does something now and then until it is stopped, and goes on whatever it raises.

    Args:
        what: is done, in words.
        act: does it.
        every_s: seconds between its end and its next beginning.
    """

    def __init__(self, what: str, act: Callable[[], object], every_s: float) -> None:
        super().__init__(name=what, daemon=True)
        self._act = act
        self._every_s = every_s
        self._faults = Faults(what)
        self._wake = threading.Event()
        self._ends = False

    def run(self) -> None:
        while not self._ends:
            try:
                self._act()
            except Exception as error:
                self._faults.add(error)
            else:
                self._faults.well()
            self._wake.wait(self._every_s)
            self._wake.clear()

    def nudge(self) -> None:
        """Do it soon."""
        self._wake.set()

    def stop(self, wait_s: float) -> None:
        """Do it no more; wait so long for it to end."""
        self._ends = True
        self._wake.set()
        self.join(wait_s)
