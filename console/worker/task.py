"""One attempt at a job, as the code that does it sees it. It runs in a child of the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any

from sqlalchemy import make_url
from sqlalchemy.orm import Session

from roundhouse.build.home import Home
from roundhouse.errors import RoundhouseError

from ..database.database import Database
from ..jobs import Worklist
from ..models import Job
from ..models_allowed import AllowedModels
from .order import WorkOrder
from .wire import Event, Progress, StageBegan, StageEnded

__all__ = ["Task", "TaskFailedError", "TaskStoppedError"]


class TaskStoppedError(RoundhouseError):
    """The work was asked to end, and did."""


class TaskFailedError(RoundhouseError):
    """The work was done and came out badly: it has a result, and a reason why that is not good."""

    def __init__(self, message: str, *, result: dict[str, Any], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class Task:
    """What a job kind has to work with.

    Args:
        order: what is to be done, and where.
        send: tells the worker.
        log: adds a line to the log.
    """

    def __init__(self, order: WorkOrder, send: Callable[[Event], None], log: Callable[[str], None]) -> None:
        self.claim = order.claim
        self.payload = order.payload
        self.home = Home(order.home)
        self.host = order.host
        self.models = AllowedModels(order.model_folders, self.home)
        self.stopping = threading.Event()
        """Set when the job is cancelled, or the worker ends. Who does not look is killed some seconds later."""
        self._url = order.database
        self._send = send
        self._log = log
        self._stage = ""

    @cached_property
    def database(self) -> Database:
        """The console's database, opened when it is first asked for."""
        return Database(make_url(self._url))

    @contextmanager
    def stage(self, name: str, what: str) -> Iterator[None]:
        """A part of the work: its name in a word, and what it does in words. Parts do not nest."""
        self.begin_stage(name, what)
        yield
        self.end_stage()

    def begin_stage(self, name: str, what: str) -> None:
        """A part of the work begins, and the one before has ended.

        Raises:
            TaskStoppedError: the work is to end.
        """
        self.check_stopping()
        self._stage = name
        self._send(StageBegan(name=name, what=what))

    def end_stage(self, result: str | None = None) -> None:
        """The part under way has ended well; what came of it, in words."""
        self._send(StageEnded(result=result))

    def progress(self, fraction: float) -> None:
        """How much of the part under way is done, from 0 to 1. Cheap, and may be said as often as one likes.

        Raises:
            TaskStoppedError: the work is to end.
        """
        self.check_stopping()
        self._send(Progress(name=self._stage, done=fraction))

    def say(self, line: str) -> None:
        """Add to the log."""
        self._log(line)

    def check_stopping(self) -> None:
        """Where the work can end without leaving anything.

        Raises:
            TaskStoppedError: it is to end.
        """
        if self.stopping.is_set():
            raise TaskStoppedError("it was asked to end")

    def publishing(self) -> AbstractContextManager[tuple[Session, Job]]:
        """A transaction in which this attempt is the only one that may publish: to be held for as short as possible.

        Raises:
            LeaseLostError: on entering: another worker has the job by now.
        """
        return Worklist(self.database).holding(self.claim)

    def close(self) -> None:
        """Give up what was opened."""
        if "database" in self.__dict__:
            self.database.close()
