"""A build's events on the terminal: what is happening, for how long, and how long is left."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .events import Event, StageFinished, StageProgress, StageStarted

__all__ = ["BuildTerminal", "answer_console", "byte_text"]

_WIDTH_WITHOUT_TERMINAL = 140


class BuildTerminal:
    """Shows events as they come; a context manager. Finished stages stay as lines, the running one moves."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[stage]:<10}"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, StageStarted):
            self._task = self._progress.add_task(event.detail, total=None, stage=event.stage)
            if not self._console.is_terminal:
                self._console.print(f"  … {event.stage:<10} {event.detail}", highlight=False, markup=False, soft_wrap=True)
        elif isinstance(event, StageProgress) and self._task is not None:
            self._progress.update(self._task, completed=event.done, total=event.total)
        elif isinstance(event, StageFinished) and self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
            line = f"  ✓ {event.stage:<10} {event.seconds:6.1f} s  {event.result}"
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        elif not isinstance(event, StageProgress | StageFinished):
            self._console.print(f"  ! {event.message}", style="yellow", highlight=False, markup=False, soft_wrap=True)


def answer_console() -> Console:
    """The console for answers: standard output, wide enough for our tables when it is a file or a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDTH_WITHOUT_TERMINAL)


def byte_text(count: int) -> str:
    """Bytes for people, in binary units: ``111.2 MiB``."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:,.0f} B" if unit == "B" else f"{value:,.1f} {unit}"
