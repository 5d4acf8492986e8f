"""What jobs that measure have in common: their record is in the database at once, and an endpoint's key reaches nobody else."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlalchemy.orm import Session

from roundhouse.build.home import Home
from roundhouse.errors import BenchmarkStoppedError
from roundhouse.serve.history import RecordAwayError

from ..access.sealing import Sealer
from ..benchmarks.requests import KEY_VARIABLE
from ..errors import ConflictError
from ..jobs import LeaseLostError
from ..models import Deployment
from .task import Task, TaskStoppedError

__all__ = ["JobWatcher", "key_in_environment"]

Record = Callable[[Session, Path, str, Home, int | None], None]


class JobWatcher:
    """Hears how a measurement goes, for a job: a :class:`roundhouse.serve.measurement.watcher.Watcher`.

    Args:
        task: the job.
        record: makes the database agree with a record's folder.
    """

    def __init__(self, task: Task, record: Record) -> None:
        self.stopping = task.stopping
        self.folder: Path | None = None
        """Of the record, once it has begun."""
        self._task = task
        self._record = record

    def began(self, folder: Path) -> None:
        """Its folder is there: the database knows it, and which job measures it."""
        self.folder = folder
        self.write_down()

    def stage(self, name: str, what: str) -> None:
        """A part begins.

        Raises:
            BenchmarkStoppedError: it is to end.
        """
        try:
            self._task.begin_stage(name, what)
        except TaskStoppedError as error:
            raise BenchmarkStoppedError(error.message) from None

    def progress(self, fraction: float) -> None:
        """How much of the part is done.

        Raises:
            BenchmarkStoppedError: it is to end.
        """
        try:
            self._task.progress(fraction)
        except TaskStoppedError as error:
            raise BenchmarkStoppedError(error.message) from None

    def say(self, line: str) -> None:
        """A line of the log."""
        self._task.say(line)

    def write_down(self) -> None:
        """Have the database know what there is by now.

        Who has lost the job leaves that to the worker of the home, and who cannot read the record just now to the next time.
        """
        task = self._task
        if self.folder is not None:
            with suppress(LeaseLostError, RecordAwayError), task.publishing() as (session, _):
                self._record(session, self.folder, task.host, task.home, task.claim.job_id)


def key_in_environment(task: Task) -> None:
    """Put the endpoint's key where the job's own code finds it: in this process's environment, and nowhere else.

    Raises:
        SetupError: it was sealed with another key than this worker's.
        ConflictError: the deployment whose key it is was forgotten.
    """
    deployment_id = task.payload.get("deployment_id")
    with task.publishing() as (session, job):
        sealed = job.sealed
        if deployment_id is not None:
            row = session.get(Deployment, deployment_id)
            if row is None:
                raise ConflictError(f"deployment {deployment_id} was forgotten")
            sealed = row.sealed
    key = Sealer.of(task.home).open(sealed).get("api_key") if sealed else None
    if key is not None:
        os.environ[KEY_VARIABLE] = key
