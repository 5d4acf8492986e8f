"""A measurement on the terminal: what is under way now, and a line for each part that is done."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["MeasurementTerminal"]


class MeasurementTerminal:
    """Shows how a measurement goes; a context manager, and a watcher.

    Args:
        console: for progress: the answer goes elsewhere.
        stopping: set when it is to end.
    """

    def __init__(self, console: Console, stopping: threading.Event) -> None:
        self.stopping = stopping
        self.folders: list[Path] = []
        """Of the records that began."""
        self._console = console
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("", total=1.0)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def began(self, folder: Path) -> None:
        self.folders.append(folder)

    def stage(self, name: str, what: str) -> None:
        self._progress.update(self._task, description=what)
        if name != "measure" and not self._console.is_terminal:
            self.say(f"… {what}")

    def progress(self, fraction: float) -> None:
        self._progress.update(self._task, completed=fraction)

    def say(self, line: str) -> None:
        self._console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
