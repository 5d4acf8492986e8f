"""The worker that a console starts beside itself, and which ends with it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

from roundhouse.serve.process.tethered import TetheredProcess

from .command_options import DATABASE_DESCRIPTOR, DATABASE_VARIABLE
from .inherited import handed_over
from .settings import ConsoleSettings

__all__ = ["WorkerBeside"]

_GRACE_S = 20.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_WELL_AFTER_S = 60.0


class WorkerBeside:
    """Keeps one worker running: started again, later each time, when it ends by itself.

    Args:
        settings: of the console.
        database: the database's URL with its password; it is handed over in memory, and nobody else sees it.
        on_line: gets each line that the worker prints.
    """

    def __init__(self, settings: ConsoleSettings, database: str, on_line: Callable[[str], None]) -> None:
        self._command = _command(settings)
        self._environment = {name: value for name, value in os.environ.items() if name != DATABASE_VARIABLE}
        self._database = database
        self._on_line = on_line
        self._process: TetheredProcess | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._started = 0.0
        self._not_before = 0.0

    def keep_running(self) -> None:
        """Start it when it does not run; to be called again and again."""
        now = time.monotonic()
        if self._process is not None and self._process.exit_code is None:
            return
        if self._process is not None:
            well = now - self._started > _WELL_AFTER_S
            self._pause_s = _FIRST_PAUSE_S if well else min(2 * self._pause_s, _LONGEST_PAUSE_S)
            self._not_before = now + self._pause_s
            self._on_line(f"the worker ended with code {self._process.exit_code}; it starts again in {self._pause_s:.0f} s")
            self._process.close()
            self._process = None
        if now >= self._not_before:
            try:
                self._process, self._started = self._start(), now
            except OSError as error:  # no memory, no processes left: the console goes on
                self._not_before = now + _LONGEST_PAUSE_S
                self._on_line(f"the worker cannot be started ({error}); it is tried again in {_LONGEST_PAUSE_S:.0f} s")

    def stop(self) -> None:
        """End it; jobs that run are given back or interrupted."""
        if self._process is not None:
            self._process.stop(_GRACE_S)

    def _start(self) -> TetheredProcess:
        with handed_over("database", self._database) as descriptor:
            environment = {**self._environment, DATABASE_DESCRIPTOR: str(descriptor)}
            return TetheredProcess(self._command, environment, self._on_line, descriptors=[descriptor])


def _command(settings: ConsoleSettings) -> Sequence[str]:
    models = [part for folder in settings.model_folders for part in ("--models", str(folder))]
    return [sys.executable, "-m", "roundhouse", "worker", "--home", str(settings.home.path), *models]
