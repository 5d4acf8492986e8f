"""What of Triton's log is kept, to say later why the server ended."""

from __future__ import annotations

import re
import threading
from collections import deque

__all__ = ["ServerLog"]

_KEPT_LINES = 200
_SHOWN_LINES = 8
_PROBLEM = re.compile(r"^(E\d{4} |error: |engine process)|Traceback|cannot|failed", re.IGNORECASE)
_HARMLESS = re.compile(r"CudaDriverHelper")
_TABLE = re.compile(r"^[+|]")
_PORT_TAKEN = re.compile(r"already in use|failed to start .* service|failed to listen", re.IGNORECASE)


class ServerLog:
    """The last lines of a server, and those among them that tell why it ended."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._lock = threading.Lock()

    def take(self, line: str) -> None:
        """Remember a line."""
        with self._lock:
            self._lines.append(line)

    @property
    def port_taken(self) -> bool:
        """Whether a line says that a port was not free."""
        with self._lock:
            return any(_PORT_TAKEN.search(line) for line in self._lines)

    def reasons(self) -> list[str]:
        """The last lines that name a problem, or the last lines at all when none does."""
        with self._lock:
            lines = list(self._lines)
        problems = [line for line in lines if _PROBLEM.search(line) and not _HARMLESS.search(line)]
        told = [line for line in lines if line and not _TABLE.match(line)]
        return list(dict.fromkeys(problems or told))[-_SHOWN_LINES:]
