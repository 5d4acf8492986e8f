"""One clock for everybody who shares a database on a server: the server's.

Leases, heartbeats and logins are moments that one machine writes and others compare with theirs. Each process measures how far
the clock of its machine is off, whenever it makes a connection, and reckons with that.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

__all__ = ["Clock", "clock", "utc_now"]

_log = logging.getLogger(__name__)
_TOLERATED = timedelta(seconds=0.5)
"""Less is not worth a jump of the clock."""
_TOLD = timedelta(seconds=5)


class Clock:
    """This moment, as the server has it; until it has been asked, as this machine has it."""

    def __init__(self) -> None:
        self._behind = timedelta()

    def now(self) -> datetime:
        """This moment."""
        return self.of_machine() + self._behind

    def of_machine(self) -> datetime:
        """This moment by this machine's own clock."""
        return datetime.now(UTC)

    def follow(self, server: datetime, asked: datetime, answered: datetime) -> None:
        """Take the server's word.

        Args:
            server: its moment.
            asked: when it was asked, by this machine's clock.
            answered: when it had answered.
        """
        half = (answered - asked) / 2
        behind = server - (asked + half)
        if abs(behind - self._behind) <= _TOLERATED + half:
            return
        if abs(behind) > _TOLD:
            _log.warning(
                "this machine's clock and the database's differ by %.0f s; the database's holds", behind.total_seconds()
            )
        self._behind = behind


clock = Clock()
"""Of this process; it has one database."""


def utc_now() -> datetime:
    """This moment, in UTC."""
    return clock.now()
