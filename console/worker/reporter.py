"""Writes what a child tells into its job's stages and log, in few transactions."""

from __future__ import annotations

import time
from itertools import groupby

from ..database.base import utc_now
from ..jobs import Claim, Worklist, journal
from .output import Output
from .wire import StageBegan, StageEnded, plain_text

__all__ = ["Reporter"]

_BATCH_S = 0.3
_BATCH_LINES = 200
_PROGRESS_EVERY_S = 0.5


class Reporter:
    """Passes on the output of one attempt.

    Args:
        worklist: where it goes.
        claim: whose output it is.
        output: where it comes from.
    """

    def __init__(self, worklist: Worklist, claim: Claim, output: Output) -> None:
        self._worklist = worklist
        self._claim = claim
        self._output = output
        self._next_line = 1
        self._next_progress = 0.0
        self._unwritten: list[str | StageBegan | StageEnded] = []

    def pass_on(self, *, wait: bool) -> bool:
        """Write a batch of what came, waiting a moment for more; returns whether there may be more.

        Raises:
            LeaseLostError: the claim is lost.
            SQLAlchemyError: the database is not there; the batch is written next time.
        """
        if not self._unwritten:
            self._unwritten = self._output.gather(_BATCH_S if wait else 0.0, _BATCH_LINES)
        now = time.monotonic()
        progress = self._output.take_progress() if now >= self._next_progress else None
        if not self._unwritten and progress is None:
            return False
        claim, line = self._claim, self._next_line
        with self._worklist.holding(claim) as (session, _):
            for is_log, items in groupby(self._unwritten, key=lambda item: isinstance(item, str)):
                if is_log:
                    lines = [str(item) for item in items]
                    journal.add_lines(session, claim, line, lines, utc_now())
                    line += len(lines)
                    continue
                for item in items:
                    if isinstance(item, StageBegan):
                        journal.begin_stage(session, claim, plain_text(item.name), plain_text(item.what), utc_now())
                    elif isinstance(item, StageEnded):
                        came = None if item.result is None else plain_text(item.result)
                        journal.end_stages(session, claim, utc_now(), came)
            if progress is not None:
                journal.stage_done(session, claim, plain_text(progress.name), progress.done)
                self._next_progress = now + _PROGRESS_EVERY_S
        full = len(self._unwritten) >= _BATCH_LINES
        self._unwritten, self._next_line = [], line
        return full
