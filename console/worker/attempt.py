"""One attempt at a job, as the worker sees it: a child process, its lease, and what becomes of the job."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from roundhouse.serve.process.tethered import TetheredProcess

from ..jobs import Claim, LeaseLostError, Worklist
from .order import ORDER, WorkOrder, handed_over
from .output import Output
from .reporter import Reporter
from .settings import WorkerSettings
from .wire import plain_text

__all__ = ["Attempt"]

T = TypeVar("T")

_log = logging.getLogger(__name__)
_RETRY_S = 0.5
_KILLED = 128 + 9


class Attempt:
    """Runs one attempt to its end.

    Args:
        settings: of the worker.
        worklist: where the job is.
        claim: the job.
        stop: set when the worker is to end.
    """

    def __init__(self, settings: WorkerSettings, worklist: Worklist, claim: Claim, stop: Event) -> None:
        self._settings = settings
        self._worklist = worklist
        self._claim = claim
        self._stop = stop
        self._output = Output()
        self._reporter = Reporter(worklist, claim, self._output)
        self._cancelled = False
        self._asked_to_end: float | None = None
        self._over_since: float | None = None
        self._renew_at = 0.0
        self._good_until = time.monotonic() + settings.lease.total_seconds()

    def run(self) -> None:
        """Do the job, whatever comes of it; returns when the child and all that it started are gone."""
        job = f"job {self._claim.job_id} ({self._claim.kind}, attempt {self._claim.attempt})"
        _log.info("%s: begun", job)
        try:
            exit_code = self._follow(self._start())
            _log.info("%s: %s", job, self._kept_trying(lambda: self._end(exit_code)))
        except LeaseLostError:
            _log.warning("%s: lost its lease; it was ended, and nothing is told of it", job)
        except Exception as error:
            _log.exception("%s: the worker failed", job)
            reason = f"the worker failed: {type(error).__name__}: {plain_text(str(error))}"
            self._kept_trying(lambda: self._worklist.end(self._claim, "failed", error=reason))

    def _start(self) -> TetheredProcess:
        settings, claim = self._settings, self._claim
        order = WorkOrder(
            job_id=claim.job_id,
            attempt=claim.attempt,
            fence=claim.fence,
            kind=claim.kind,
            payload=claim.payload,
            home=settings.home.path,
            host=settings.host,
            model_folders=settings.model_folders,
            database=settings.database.get_secret_value(),
        )
        with handed_over(order) as descriptor:
            environment = {**os.environ, ORDER: str(descriptor), "PYTHONUNBUFFERED": "1"}
            return TetheredProcess(settings.child, environment, self._output.take_line, descriptors=[descriptor])

    def _follow(self, process: TetheredProcess) -> int:
        """Pass on what the child says, keep the lease, and end it when it must; returns its exit code."""
        try:
            while (exit_code := process.exit_code) is None:
                self._kept_trying(lambda: self._reporter.pass_on(wait=True))
                now = time.monotonic()
                if now >= self._renew_at:
                    self._cancelled = self._kept_trying(self._renew)
                    self._renew_at = now + self._settings.renew_s
                if (self._cancelled or self._stop.is_set()) and self._asked_to_end is None:
                    self._asked_to_end = now
                    process.ask_to_end()
                if self._output.ended is not None and self._over_since is None:
                    self._over_since = now
                for since in (self._asked_to_end, self._over_since):
                    if since is not None and now > since + self._settings.grace_s:
                        process.close()
        finally:
            process.close()  # kills what is left of it, and waits for its last lines
        while self._kept_trying(lambda: self._reporter.pass_on(wait=False)):
            pass
        return exit_code

    def _renew(self) -> bool:
        began = time.monotonic()
        cancelled = self._worklist.renew(self._claim)
        self._good_until = began + self._settings.lease.total_seconds()
        return cancelled

    def _end(self, exit_code: int) -> str:
        """Tell how the job ended; returns it in a word."""
        ended, claim = self._output.ended, self._claim
        if ended is not None and ended.error is None:
            self._worklist.end(claim, "succeeded", result=ended.result)
            return "succeeded"
        if self._cancelled:
            self._worklist.end(claim, "cancelled")
            return "cancelled"
        if self._asked_to_end is not None:
            self._worklist.give_back(claim)
            return "given back, because the worker ends"
        if ended is not None:
            hint = None if ended.hint is None else plain_text(ended.hint)
            self._worklist.end(claim, "failed", result=ended.result, error=plain_text(ended.error or ""), hint=hint)
            return f"failed: {ended.error}"
        error, hint = f"its process ended without a word (exit code {exit_code})", "The log may tell why."
        if exit_code == _KILLED:
            error, hint = "its process was killed", "The host may have run out of memory: its kernel log tells."
        self._worklist.end(claim, "failed", error=error, hint=hint)
        return f"failed: {error}"

    def _kept_trying(self, act: Callable[[], T]) -> T:
        """Do something with the database; while it is away, or busy, again and again for as long as the lease is surely good.

        Raises:
            LeaseLostError: the claim is lost, or would be by now.
        """
        while True:
            try:
                return act()
            except (OperationalError, InterfaceError, NoConnectionError) as error:
                if time.monotonic() > self._good_until:
                    raise LeaseLostError("the database was away for longer than the lease") from error
                time.sleep(_RETRY_S)
