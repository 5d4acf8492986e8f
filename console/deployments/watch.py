"""Tells the database how the deployments of this host are. Everything it knows is read from their folders, so one that starts
anew, beside deployments that have run for weeks, goes on where the one before it ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from roundhouse.build.home import Home

from ..database.base import utc_now
from ..database.database import Database
from ..integrity.collecting import EventCollector
from ..models import LIVE_JOB_STATES, LIVE_STATES, Deployment, DeploymentSample, Job
from ..supervisor.folder import DeploymentFolder, deployments_of
from ..supervisor.log import LogReader
from .ending import clear
from .log_rows import KEPT_LINES, add_lines, last_numbers
from .observing import Observation, observe
from .telling import tell, tell_said

__all__ = ["DeploymentWatch"]

_log = logging.getLogger(__name__)

_KEPT_SAMPLES = timedelta(minutes=15)
_AT_ONCE = 8


@dataclass(frozen=True)
class _Seen:
    """One deployment, as this look found it."""

    id: str
    observation: Observation | None
    lines: list[tuple[int, str]]


class DeploymentWatch:
    """Looks at the deployments of one home.

    Args:
        database: where they are told of.
        home: whose.
        host: this machine's name, as deployments name it.
    """

    def __init__(self, database: Database, home: Home, host: str) -> None:
        self._database = database
        self._home = home
        self._here = (Deployment.host == host, Deployment.home == str(home.path))
        self._readers: dict[str, LogReader] = {}
        self._unknown: set[str] = set()
        self._odd: set[str] = set()
        self._events = EventCollector(database, home, host)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="deployment-watch")

    def look(self) -> None:
        """Look once at all of them. Takes as long as the slowest one's front, at most a few seconds."""
        folders = {folder.deployment_id: folder for folder in deployments_of(self._home)}
        with self._database.reading() as session:
            wanted = or_(Deployment.state.in_(LIVE_STATES), Deployment.id.in_(folders))
            known = {row.id: row.name for row in session.scalars(select(Deployment).where(*self._here, wanted))}
            logged = last_numbers(session, list(known))
        self._mention_unknown(folders.keys() - known.keys())
        if known:
            look = ((id_, folders.get(id_), name, logged.get(id_, 0)) for id_, name in known.items())
            seen = [each for each in self._pool.map(self._see, *zip(*look, strict=True)) if each is not None]
            with self._database.writing() as session:
                ended = self._tell(session, seen)
            for id_ in ended & folders.keys():
                clear(self._database, self._home, folders[id_])
        self._readers = {id_: reader for id_, reader in self._readers.items() if id_ in known}
        self._events.collect()

    def close(self) -> None:
        """Look no more."""
        self._pool.shutdown()

    def _see(self, id_: str, folder: DeploymentFolder | None, name: str, logged: int) -> _Seen | None:
        """None: it cannot be looked at, and is left as it is; that keeps nobody from looking at the others."""
        if folder is None:
            return _Seen(id_, None, [])
        try:
            observation = observe(folder, name)
            reader = self._readers.setdefault(id_, LogReader(folder.path))
            return _Seen(id_, observation, reader.after(logged, most=KEPT_LINES))
        except Exception:
            if id_ not in self._odd:
                _log.exception("deployment %s cannot be looked at", id_)
            self._odd.add(id_)
            return None

    def _tell(self, session: Session, seen: Iterable[_Seen]) -> set[str]:
        """Write it all down; returns the ids of those that have ended."""
        found = {each.id: each for each in seen}
        in_order = select(Deployment).where(Deployment.id.in_(found)).order_by(Deployment.id)
        rows = session.scalars(in_order.with_for_update()).all()
        jobs = _latest_jobs(session, list(found))
        now = utc_now()
        for row in rows:
            each = found[row.id]
            add_lines(session, row.id, each.lines)
            _settle(row, each.observation, jobs.get(row.id))
            if each.observation is not None:
                row.seen_at = now
                if each.observation.sample is not None:
                    values = each.observation.sample.model_dump()
                    session.add(DeploymentSample(deployment_id=row.id, at=now, values=values))
        old = (DeploymentSample.deployment_id.in_(found), DeploymentSample.at < now - _KEPT_SAMPLES)
        session.execute(delete(DeploymentSample).where(*old))
        return {row.id for row in rows if row.state not in LIVE_STATES}

    def _mention_unknown(self, ids: set[str]) -> None:
        for id_ in sorted(ids - self._unknown):
            _log.warning("%s: the database knows no deployment %s; it is left as it is", self._home.path / "deployments", id_)
        self._unknown |= ids


def _latest_jobs(session: Session, deployment_ids: list[str]) -> dict[str, Job]:
    """The last job of each that was to start or stop it; one that is at it comes before those that have ended."""
    about = (Job.deployment_id.in_(deployment_ids), Job.kind.in_(("deploy", "undeploy")))
    in_order = select(Job).where(*about).order_by(Job.state.in_(LIVE_JOB_STATES), Job.id)
    return {job.deployment_id or "": job for job in session.scalars(in_order)}


def _settle(row: Deployment, observation: Observation | None, job: Job | None) -> None:
    """What the database says from now on. A job that is at it knows better than what was seen a moment ago."""
    at_it = job.kind if job is not None and job.state in LIVE_JOB_STATES else None
    if observation is not None:
        tell_said(row, observation.said)
    of_before = at_it == "deploy" and observation is not None and observation.state not in LIVE_STATES  # it is tried again
    if observation is None or observation.state == "dead" or of_before:
        if at_it is not None or row.state not in LIVE_STATES:
            return
        if observation is not None:
            tell(row, "dead", reason=observation.reason)
        else:
            why = f": job {job.id} was {job.state}" + (f", {job.error}" if job.error else "") if job else ""
            tell(row, "failed", reason=f"it was never started{why}", hint=job.hint if job else None)
    elif row.state == "stopping" and at_it == "undeploy" and observation.state in LIVE_STATES:
        return  # it is being stopped: that its supervisor has not heard of it yet is no news
    elif observation.state in LIVE_STATES or row.state in LIVE_STATES:
        tell(row, observation.state, reason=observation.reason, hint=observation.hint)
