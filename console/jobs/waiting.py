"""Why a job waits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..models import Job, Worker
from .lanes import lane_of
from .liveness import is_alive
from .records import JobRow

__all__ = ["why_waiting"]


def why_waiting(session: Session, job: Job | JobRow, now: datetime | None = None) -> str | None:
    """Why no worker runs a queued job, in a sentence; None when one will take it at once, or when the job does not wait.

    Two statements at most.

    Args:
        session: where to read.
        job: the job.
        now: this moment; None: the clock's.
    """
    if job.state != "queued":
        return None
    alive = session.execute(select(Worker.id, Worker.host, Worker.home, Worker.targets).where(is_alive(now or utc_now()))).all()
    if not alive:
        return "No worker is alive: `roundhouse worker` starts one."
    if job.target is not None:
        alive = [worker for worker in alive if job.target in worker.targets]
        if not alive:
            return f"No worker with target {job.target} is alive."
    there = [worker for worker in alive if job.host in (None, worker.host)]
    if not there:
        fit = f" with target {job.target}" if job.target is not None else ""
        seen = session.scalar(select(Worker.seen_at).where(Worker.host == job.host).order_by(Worker.seen_at.desc()).limit(1))
        if seen is None:
            return f"Host {job.host} never had a worker{fit}: it can only be done there."
        gone = f"No worker{fit} of host {job.host} is alive; one was last heard of at {seen:%Y-%m-%d %H:%M:%S} UTC."
        # Other jobs are about something that lies there; a build was given to the host as it has room.
        return f"{gone} A new build goes to a host that is alive and has room." if job.kind == "build" else gone
    able = [worker.id for worker in there if job.home in (None, worker.home)]
    if not able:
        on_host = f" on host {job.host}" if job.host is not None else ""
        return f"No worker with the home {job.home} is alive{on_host}."
    return _behind(session, job, able)


def _behind(session: Session, job: Job | JobRow, able: Sequence[str]) -> str | None:
    """Which job it waits for: one that is at the same deployment, or the first of those that keep every able worker busy."""
    in_lane = and_(Job.kind.in_(lane_of(job.kind)), Job.worker_id.in_(able))
    running = select(Job.id, Job.kind, Job.subject, Job.worker_id, Job.deployment_id).where(Job.state == "running")
    # Without a deployment it would be compared with NULL: every job that has none, on any host.
    in_its_way = in_lane if job.deployment_id is None else or_(in_lane, Job.deployment_id == job.deployment_id)
    found = session.execute(running.where(in_its_way).order_by(Job.id)).all()
    for each in found:
        if job.deployment_id is not None and each.deployment_id == job.deployment_id:
            return f"It waits until job {each.id} has ended, which is at the same deployment ({each.kind})."
    if found and {each.worker_id for each in found} >= set(able):
        return f"It waits behind job {found[0].id} ({found[0].kind} {found[0].subject})."
    return None
