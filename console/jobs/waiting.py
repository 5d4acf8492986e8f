"""Why a job waits although nobody holds it up."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..models import Job, Worker
from .liveness import is_alive
from .records import JobRow

__all__ = ["why_waiting"]


def why_waiting(session: Session, job: Job | JobRow, now: datetime | None = None) -> str | None:
    """Why no worker that is there can run a queued job, in a sentence; None when one can, or when the job does not wait.

    Two statements at most.

    Args:
        session: where to read.
        job: the job.
        now: this moment; None: the clock's.
    """
    if job.state != "queued":
        return None
    alive = session.execute(select(Worker.host, Worker.home, Worker.targets).where(is_alive(now or utc_now()))).all()
    if not alive:
        return "No worker is alive: `roundhouse worker` starts one."
    if job.target is not None:
        alive = [worker for worker in alive if job.target in worker.targets]
        if not alive:
            return f"No worker with target {job.target} is alive."
    there = [worker for worker in alive if job.host in (None, worker.host)]
    if not there:
        able = f" with target {job.target}" if job.target is not None else ""
        seen = session.scalar(select(Worker.seen_at).where(Worker.host == job.host).order_by(Worker.seen_at.desc()).limit(1))
        if seen is None:
            return f"Host {job.host} never had a worker{able}: it can only be done there."
        return f"No worker{able} of host {job.host} is alive; one was last heard of at {seen:%Y-%m-%d %H:%M:%S} UTC."
    if not any(job.home in (None, worker.home) for worker in there):
        on_host = f" on host {job.host}" if job.host is not None else ""
        return f"No worker with the home {job.home} is alive{on_host}."
    return None
