"""Starts runs of the engine process: one whenever it is needed, with growing pauses when they end too soon."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from roundhouse.errors import ServeError

from .connection import EngineConnection
from .messages import Ready
from .socket_folders import SocketFolders

__all__ = ["LONGEST_DELAY_S", "EngineStarter", "restart_delay"]

LONGEST_DELAY_S = 30.0
_POLL_S = 0.1


def restart_delay(deaths: int) -> float:
    """Seconds to wait before a restart after ``deaths`` quick deaths in a row: 1, 2, 4 … 30."""
    return min(LONGEST_DELAY_S, 2.0 ** (deaths - 1))


class EngineStarter:
    """Used by one thread at a time.

    Args:
        command: the process to start, without its sockets.
        stopping: set when nothing is to be started any more.
        log: gets what the process prints, and notes about restarts. Must not raise.
    """

    def __init__(self, command: Sequence[str], stopping: threading.Event, log: Callable[[str], None]) -> None:
        self._command = list(command)
        self._stopping = stopping
        self._log = log
        self._folders = SocketFolders()

    def start(self) -> tuple[EngineConnection, Ready]:
        """Start a run and wait until it is ready.

        Raises:
            ServeError: it could not be run, or ended before that; the message holds its last line.
        """
        sockets = self._folders.fresh()
        connection = EngineConnection([*self._command, "--sockets", str(sockets)], sockets, self._log)
        try:
            while not self._stopping.is_set():
                messages = connection.receive(_POLL_S)
                if messages and isinstance(messages[0], Ready):
                    return connection, messages[0]
                if not messages and not connection.alive:
                    break
        except ServeError:
            connection.close(grace_s=1.0)
            raise
        connection.close(grace_s=1.0)
        raise ServeError(f"the engine process could not start: {connection.last_words}")

    def start_again(self, deaths: int) -> tuple[EngineConnection, Ready] | None:
        """Start until it works; None when everything is to stop meanwhile.

        Args:
            deaths: quick ones in a row before this.
        """
        while not self._stopping.is_set():
            delay = restart_delay(deaths)
            self._log(f"the engine process ended; starting it again in {delay:g} s")
            if self._stopping.wait(delay):
                break
            try:
                return self.start()
            except ServeError as error:
                self._log(error.message)
                deaths += 1
        return None

    def remove(self) -> None:
        """Remove the sockets of all runs. May be called more than once."""
        self._folders.remove()
