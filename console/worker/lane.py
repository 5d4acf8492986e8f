"""A lane: takes jobs of some kinds, one after the other. What waits in one lane holds up no other."""

from __future__ import annotations

import threading
from collections.abc import Callable

from roundhouse.build.store import EngineStore
from roundhouse.build.workspace import remove_dead_builds

from ..jobs import Worklist
from ..jobs.lanes import LANES
from ..models import Worker
from .attempt import Attempt
from .periodic import Faults
from .settings import WorkerSettings

__all__ = ["Lane", "remove_leftovers"]


class Lane(threading.Thread):
    """Works until it is stopped.

    Args:
        name: one of LANES.
        settings: of the worker.
        worklist: where jobs are.
        worker: who takes them.
        stop: set when the worker is to end.
        after_job: called when a job has ended, whatever became of it.
    """

    def __init__(
        self,
        name: str,
        settings: WorkerSettings,
        worklist: Worklist,
        worker: Worker,
        stop: threading.Event,
        after_job: Callable[[], object],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._kinds = LANES[name]
        self._settings = settings
        self._worklist = worklist
        self._worker = worker
        self._ending = stop
        self._after_job = after_job
        self._faults = Faults(f"taking jobs ({', '.join(self._kinds)})")

    def run(self) -> None:
        while not self._ending.is_set():
            try:
                took = self._take_one()
            except Exception as error:
                self._faults.add(error)
                took = False
            else:
                self._faults.well()
            if not took:
                self._ending.wait(self._settings.poll_s)

    def _take_one(self) -> bool:
        claim = self._worklist.claim(self._worker, self._kinds)
        if claim is None:
            return False
        try:
            Attempt(self._settings, self._worklist, claim, self._ending).run()
        finally:
            remove_leftovers(self._settings)
            self._after_job()
        return True


def remove_leftovers(settings: WorkerSettings) -> None:
    """Remove what builds, imports and removals left that were killed; those that are alive keep theirs."""
    for folder in (settings.home.engines, settings.home.cache / "models"):
        remove_dead_builds(folder)
    EngineStore(settings.home).delete_withdrawn()
