"""A worker that does what a test tells it, through the same worklist as real ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from roundhouse.console.database.database import Database
from roundhouse.console.jobs import Claim, Worklist
from roundhouse.console.models import Job, JobState, Worker

__all__ = ["ScriptedWorker"]

Work = Callable[[Worklist, Claim], None]


class ScriptedWorker:
    """Takes jobs one after another, in a thread."""

    def __init__(self, database: Database, worker: Worker) -> None:
        self.worklist = Worklist(database)
        self._database = database
        self._worker = worker
        self._over = threading.Event()
        self.failed: list[BaseException] = []

    @contextmanager
    def doing(self, work: Work) -> Iterator[None]:
        """Do this with every job that is asked for meanwhile."""
        self._over.clear()
        thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        thread.start()
        yield
        self._over.set()
        thread.join(timeout=60)
        assert self.failed == []

    def _run(self, work: Work) -> None:
        try:
            while not self._over.wait(0.02):
                claim = self.worklist.claim(self._worker)
                if claim is not None:
                    work(self.worklist, claim)
        except BaseException as error:
            self.failed.append(error)

    def ends(self, state: JobState, *lines: str, engine_id: str | None = None, **how: Any) -> Work:
        """Work that has two stages, says some lines, and ends like this."""

        def work(worklist: Worklist, claim: Claim) -> None:
            worklist.begin_stage(claim, "import", "the model")
            worklist.log(claim, 1, ["import: the model", *lines])
            worklist.begin_stage(claim, "quantize", "7 layers")
            if engine_id is not None:
                with self._database.writing() as session:
                    session.get_one(Job, claim.job_id).engine_id = engine_id
            worklist.end(claim, state, **how)

        return work
