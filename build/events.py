"""What a build says while it runs: typed events, for a terminal now and for a database later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Event", "OnEvent", "OnStep", "Reporter", "Stage", "StageFinished", "StageProgress", "StageStarted", "Warned"]


@dataclass(frozen=True)
class StageStarted:
    """A stage began; ``detail`` says in a few words what it does."""

    stage: str
    detail: str


@dataclass(frozen=True)
class StageProgress:
    """``done`` of ``total`` equal steps of a stage are behind us."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True)
class StageFinished:
    """A stage ended well after ``seconds``; ``result`` says in a few words with what."""

    stage: str
    seconds: float
    result: str


@dataclass(frozen=True)
class Warned:
    """Something the user should know, that does not stop the build."""

    message: str


Event = StageStarted | StageProgress | StageFinished | Warned
OnEvent = Callable[[Event], None]
OnStep = Callable[[int, int], None]
"""Told (done, total) equal steps."""


class Stage:
    """A running stage: tell it how far it is and what came of it."""

    def __init__(self, name: str, on_event: OnEvent) -> None:
        self.name = name
        self.result = ""
        self._on_event = on_event

    def progress(self, done: int, total: int) -> None:
        """``done`` of ``total`` equal steps are behind us."""
        self._on_event(StageProgress(self.name, done, total))


class Reporter:
    """Emits the events of one build and remembers stage times and warnings for the manifest."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []

    @contextmanager
    def stage(self, name: str, detail: str) -> Iterator[Stage]:
        """Run a stage; no finished event is sent when it raises."""
        self._on_event(StageStarted(name, detail))
        stage, start = Stage(name, self._on_event), time.monotonic()
        yield stage
        self.seconds[name] = round(time.monotonic() - start, 3)
        self._on_event(StageFinished(name, self.seconds[name], stage.result))

    def warn(self, message: str) -> None:
        """Send a warning, once."""
        if message not in self.warnings:
            self.warnings.append(message)
            self._on_event(Warned(message))
