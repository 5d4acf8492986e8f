"""A job of another machine on this terminal: what it is doing, for how long, and its log."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from ..jobs.records import JobAnswer, StageRow

__all__ = ["JobTerminal"]


class JobTerminal:
    """Shows a job as it is looked at; a context manager. Stages and log lines stay, what is under way moves.

    Args:
        stream: where it writes; what moves is left out where that is no terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._waiting: str | None = None
        self._attempt = 0
        self._staged: set[str] = set()
        self._logged: set[str] = set()
        """What stages and log of this attempt have said: builds say a stage's words in both, and either may come first."""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def show(self, answer: JobAnswer) -> None:
        """Show where a job is."""
        job = answer.job
        if job.state == "queued":
            reason = f": {answer.waiting}" if answer.waiting else ""
            if reason != self._waiting:
                self._waiting = reason
                self.say(f"job {job.id} is in line{reason}")
            return
        if job.attempt != self._attempt:
            self._attempt, self._staged, self._logged = job.attempt, set(), set()
        for stage in job.stages:
            words = f"{stage.name}: {stage.what}"
            if words not in self._staged | self._logged:
                self.say(f"  … {stage.name:<10} {stage.what}")
            self._staged.add(words)
        self._move(job.stage if job.is_live else None)

    def say(self, text: str) -> None:
        """A line of our own."""
        self._console.print(text, style="dim", markup=False, soft_wrap=True)

    def log(self, line: str) -> None:
        """A line of the job's log."""
        self._logged.add(line)
        if line not in self._staged:
            self._console.print(line, markup=False, soft_wrap=True)

    def _move(self, stage: StageRow | None) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
        if stage is not None and stage.ended_at is None:
            self._task = self._progress.add_task(f"{stage.name}: {stage.what}", total=None if stage.done is None else 1.0)
            self._progress.update(self._task, completed=stage.done or 0.0)
