"""A console's database with an engine and a worker in it, and jobs done as a worker does them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr
from sqlalchemy import select, update

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.console.access.actor import Actor
from roundhouse.console.access.sealing import Sealer
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.deployments.actions import ask_deploy
from roundhouse.console.deployments.settings import DeploymentSecrets, DeploymentSettings
from roundhouse.console.jobs import Claim, Worklist
from roundhouse.console.models import Deployment, DeploymentLogLine, EngineRecord, EngineReplica, Worker
from roundhouse.console.supervisor.folder import DeploymentFolder
from roundhouse.console.worker.order import WorkOrder
from roundhouse.console.worker.task import Task

HOST = "here"
OPERATOR = Actor(user_id=1, name="olga", role="operator", by="browser", address="10.0.0.9")
VIEWER = Actor(user_id=2, name="vera", role="viewer", by="browser", address="10.0.0.9")
SEALER = Sealer("a key that nobody would ever guess, at all")
TIMEOUT_S = 90
ENGINE_ID = "0123456789abcdef"


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"within {TIMEOUT_S} s: {what}"
        time.sleep(0.05)


def add_engine(
    database: Database, home: Home, *, id_: str = ENGINE_ID, name: str = "tiny", engine: Engine | None = None
) -> None:
    """An engine that lies in this home, by its rows."""
    now = utc_now()
    record = EngineRecord(
        id=engine.manifest.id if engine else id_,
        name=engine.manifest.name if engine else name,
        model="m",
        target="torch",
        role="aggregated",
        weights="bf16",
        group_size=None,
        kv_cache="bf16",
        total_bytes=1,
        base_bytes=1,
        checkpoint_bytes=1,
        kv_tokens=1,
        top1_agreement=1.0,
        kl=0.0,
        manifest={},
        created_at=now,
        recorded_at=now,
    )
    replica = EngineReplica(
        engine_id=record.id,
        host=HOST,
        home=str(home.path),
        folder="f",
        state="present",
        problem=None,
        found_at=now,
        verified_at=None,
    )
    with database.writing() as session:
        session.add(record)
        session.flush()
        session.add(replica)


def add_worker(database: Database, home: Home, *, id_: str = "w") -> Worker:
    """A worker that is alive."""
    now = utc_now()
    worker = Worker(
        id=id_, host=HOST, pid=1, home=str(home.path), hardware={}, versions={}, targets=["torch"], disk_free=1, disk_total=2,
        started_at=now, seen_at=now, ended_at=None,
    )  # fmt: skip
    with database.writing() as session:
        session.add(worker)
    return worker


@dataclass
class Workshop:
    """One home of one host, with an engine and a worker."""

    database: Database
    home: Home
    engine_id: str
    worker: Worker
    events: list[Any] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, database: Database, home: Home, engine: Engine) -> Workshop:
        add_engine(database, home, engine=engine)
        return cls(database, home, engine.manifest.id, add_worker(database, home))

    def ask(self, name: str = "tiny", *, key: str | None = None, control: str | None = None, **settings: Any) -> str:
        """Ask for a deployment; its id."""
        wanted = DeploymentSettings(engine_id=self.engine_id, name=name, keyed=key is not None, **settings)
        secrets = DeploymentSecrets(
            api_key=SecretStr(key) if key else None, control_value=SecretStr(control) if control else None
        )
        with self.database.writing() as session:
            session.execute(update(Worker).values(seen_at=utc_now()))  # however long the tests before took
            row, _ = ask_deploy(session, OPERATOR, wanted, secrets, Sealer.of(self.home))
            return row.id

    def claim(self) -> Claim:
        """The next job."""
        claim = Worklist(self.database).claim(self.worker)
        assert claim is not None
        return claim

    def task(self, claim: Claim | None = None) -> Task:
        """The next job as its kind sees it."""
        claim = claim or self.claim()
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

    def do(self, run: Callable[[Task], dict[str, Any]]) -> dict[str, Any]:
        """Do the next job, to its end."""
        task = self.task()
        try:
            result = run(task)
        finally:
            task.close()
        Worklist(self.database).end(task.claim, "succeeded", result=result)
        return result

    def folder(self, id_: str) -> DeploymentFolder:
        return DeploymentFolder(self.home.path.resolve() / "deployments" / id_)

    def row(self, id_: str) -> Deployment:
        with self.database.reading() as session:
            row = session.get(Deployment, id_)
            assert row is not None
            return row

    def log(self, id_: str) -> list[tuple[int, str]]:
        with self.database.reading() as session:
            line = DeploymentLogLine
            rows = session.scalars(select(line).where(line.deployment_id == id_).order_by(line.number))
            return [(row.number, row.text) for row in rows]


START = """
import sys
from pathlib import Path
from roundhouse.console.supervisor.folder import DeploymentFolder
from roundhouse.console.supervisor.process import start
print("pid", start(DeploymentFolder(Path(sys.argv[1]))).pid, flush=True)
sys.stdin.read()
"""
"""A program that starts a supervisor as a worker's child does."""


def in_a_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def python() -> str:
    return sys.executable
