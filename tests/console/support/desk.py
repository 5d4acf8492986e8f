"""Tasks of jobs in this process, without a worker and the child around them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from roundhouse.build.home import Home
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.jobs import NewJob, Worklist, enqueue
from roundhouse.console.models import EngineReplica, Worker
from roundhouse.console.worker.kinds import run_kind
from roundhouse.console.worker.order import WorkOrder
from roundhouse.console.worker.task import Task
from roundhouse.console.worker.wire import Event

HOST = "here"


class Desk:
    """Tasks in this process, and what they said."""

    def __init__(self, database: Database, home: Home) -> None:
        self.database = database
        self.home = home
        self.events: list[Event] = []
        self.lines: list[str] = []
        with database.writing() as session:
            now = utc_now()
            self.worker = Worker(
                id="w", host=HOST, pid=1, home=str(home.path), hardware={}, versions={}, targets=["torch"], disk_free=1,
                disk_total=2, started_at=now, seen_at=now,
            )  # fmt: skip
            session.add(self.worker)

    def task(self, kind: Any, *, sealed: str | None = None, **payload: Any) -> Task:
        with self.database.writing() as session:
            enqueue(session, NewJob(kind=kind, subject="it", payload=payload, sealed=sealed))
        return self.next_task()

    def next_task(self) -> Task:
        """Of the job whose turn it is."""
        claim = Worklist(self.database).claim(self.worker)
        assert claim is not None
        order = WorkOrder(
            job_id=claim.job_id,
            attempt=claim.attempt,
            fence=claim.fence,
            kind=claim.kind,
            payload=claim.payload,
            home=self.home.path,
            host=HOST,
            model_folders=(),
            database=self.database.url.render_as_string(hide_password=False),
        )
        return Task(order, self.events.append, self.lines.append)

    def run(self, kind: Any, **payload: Any) -> dict[str, Any]:
        task = self.task(kind, **payload)
        try:
            return run_kind(task)
        finally:
            task.close()

    def replica(self) -> EngineReplica | None:
        with self.database.reading() as session:
            return session.scalars(select(EngineReplica)).one_or_none()
