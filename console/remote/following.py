"""Follows a job: its stages and its log on standard error, until it ends."""

from __future__ import annotations

import sys
import time
from typing import NoReturn

import typer

from roundhouse.errors import RoundhouseError

from ..jobs.records import JobAnswer, JobDetail, LogAnswer
from .client import Client
from .failures import UnreachableError
from .job_terminal import JobTerminal

__all__ = ["follow_job", "raise_unless_succeeded"]

_POLL_S = 1.0
_PATIENCE_S = 600.0
"""For so long a console may be away while a job is followed: it may be upgraded meanwhile."""
_LINES = 1_000


def follow_job(client: Client, job_id: int, *, may_fail: bool = False) -> JobDetail:
    """Show what a job does until it ends.

    Args:
        client: where it is.
        job_id: which.
        may_fail: whether one that failed is returned, too: its result tells more.

    Returns:
        The job as it ended.

    Raises:
        RoundhouseError: it did not succeed; its own words.
        typer.Exit: Ctrl-C: it goes on, and is not shown any more.
    """
    try:
        with JobTerminal(sys.stderr) as terminal:
            job = _Following(client, job_id, terminal).until_ended()
    except KeyboardInterrupt:
        more = f"roundhouse --server {client.server} jobs log {job_id} --follow"
        typer.echo(f"job {job_id} goes on; to see it again: {more}", err=True)
        raise typer.Exit(130) from None
    if not (may_fail and job.state == "failed"):
        raise_unless_succeeded(job)
    return job


def raise_unless_succeeded(job: JobDetail) -> None:
    """See that a job that has ended came out well.

    Raises:
        RoundhouseError: it did not; its own words.
    """
    if job.state != "succeeded":
        _raise(job)


def _raise(job: JobDetail) -> NoReturn:
    if job.state == "failed":
        raise RoundhouseError(job.error or f"job {job.id} failed", hint=job.hint)
    words = {"cancelled": "was cancelled", "interrupted": "was interrupted: its worker went away"}
    raise RoundhouseError(f"job {job.id} {words.get(job.state, f'is {job.state}')}", hint=job.hint)


class _Following:
    def __init__(self, client: Client, job_id: int, terminal: JobTerminal) -> None:
        self._client = client
        self._job_id = job_id
        self._terminal = terminal
        self._attempt = 0
        self._line = 0

    def until_ended(self) -> JobDetail:
        away_since: float | None = None
        while True:
            try:
                job = self._look()
            except UnreachableError as error:
                now = time.monotonic()
                if away_since is None:
                    away_since = now
                    self._terminal.say(f"{error.message}; trying again")
                elif now - away_since > _PATIENCE_S:
                    raise
                time.sleep(_POLL_S)
                continue
            away_since = None
            if not job.is_live:
                return job
            time.sleep(_POLL_S)

    def _look(self) -> JobDetail:
        """Show what is new. The job is read before its log: one that has ended has its last lines."""
        answer = self._client.get(f"/jobs/{self._job_id}", JobAnswer)
        self._terminal.show(answer)
        if answer.job.attempt != self._attempt:
            self._attempt, self._line = answer.job.attempt, 0
            if self._attempt > 1:
                self._terminal.say(f"attempt {self._attempt}")
        while self._attempt:
            query = {"attempt": self._attempt, "after": self._line, "most": _LINES}
            lines = self._client.get(f"/jobs/{self._job_id}/log", LogAnswer, query).lines
            for line in lines:
                self._terminal.log(line.text)
                self._line = line.number
            if len(lines) < _LINES:
                break
        return answer.job
