"""A child's output, as it comes: sorted into log lines, stages and progress, and kept until somebody takes it."""

from __future__ import annotations

import queue
import time
from threading import Lock

from .wire import Ended, Progress, StageBegan, StageEnded, plain_text, read_line

__all__ = ["MOST_LINES", "MOST_OF_A_LINE", "Output"]

MOST_LINES = 20_000
"""Of an attempt's log; the rest is not kept."""
MOST_OF_A_LINE = 4096
"""Characters of a line; the rest is not kept."""
_CUT = " … (cut)"


class Output:
    """Takes lines from one thread and gives them to another. It never makes the child wait, and never grows beyond the log.

    Args:
        most_lines: of the log.
    """

    def __init__(self, most_lines: int = MOST_LINES) -> None:
        self.ended: Ended | None = None
        """How the work ended, once it said so."""
        self._most_lines = most_lines
        self._lines = 0
        self._waiting: queue.SimpleQueue[str | StageBegan | StageEnded] = queue.SimpleQueue()
        self._progress: Progress | None = None
        self._lock = Lock()

    def take_line(self, line: str) -> None:
        """A line came."""
        text, event = read_line(line)
        if text is not None:
            self._log(text)
        if isinstance(event, Progress):
            with self._lock:
                self._progress = event
        elif isinstance(event, Ended):
            self.ended = event
        elif event is not None:
            self._waiting.put(event)

    def gather(self, wait_s: float, most: int) -> list[str | StageBegan | StageEnded]:
        """What has come and comes within ``wait_s`` seconds, in order: log lines and stages, ``most`` of them at most."""
        items: list[str | StageBegan | StageEnded] = []
        until = time.monotonic() + wait_s
        while len(items) < most:
            try:
                items.append(self._waiting.get(timeout=max(0.0, until - time.monotonic())))
            except queue.Empty:
                break
        return items

    def take_progress(self) -> Progress | None:
        """The latest progress, if any has come since the last call."""
        with self._lock:
            progress, self._progress = self._progress, None
        return progress

    def _log(self, text: str) -> None:
        self._lines += 1
        if self._lines > self._most_lines:
            return
        if self._lines == self._most_lines:
            self._waiting.put(f"The rest of the log is not kept: it has more than {self._most_lines - 1:,} lines.")
            return
        text = plain_text(text)
        self._waiting.put(text if len(text) <= MOST_OF_A_LINE else text[:MOST_OF_A_LINE] + _CUT)
