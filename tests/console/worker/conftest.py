"""Workers under test: in a thread, with real children, or as a process of their own that can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from desk import Desk

from roundhouse.build.home import Home
from roundhouse.console.database.database import Database
from roundhouse.console.jobs import NewJob, cancel_job, enqueue
from roundhouse.console.jobs.queries import job_detail, log_lines
from roundhouse.console.jobs.records import JobDetail
from roundhouse.console.models import Job
from roundhouse.console.worker.service import run_worker
from roundhouse.console.worker.settings import WorkerSettings

SUPPORT = Path(__file__).parent / "support"
LIMIT_S = 120.0


def eventually(condition: Callable[[], Any], what: str = "") -> Any:
    """What a condition answers as soon as that is true."""
    until = time.monotonic() + LIMIT_S
    while not (answer := condition()):
        assert time.monotonic() < until, f"it never came to {what or condition}"
        time.sleep(0.02)
    return answer


class Bench:
    """A database, a home, and workers."""

    def __init__(self, database: Database, home: Home) -> None:
        self.database = database
        self.home = home
        self.mark = f"mark-{uuid.uuid4().hex}"
        self._stops: list[Callable[[], None]] = []

    def settings(self, *, pause_at: str | None = None, lease_s: float = 30.0, **keys: Any) -> WorkerSettings:
        stages = () if pause_at is None else (pause_at,)
        return WorkerSettings(
            home=self.home,
            database=self.database.url.render_as_string(hide_password=False),
            lease=timedelta(seconds=lease_s),
            child=(sys.executable, "-P", str(SUPPORT / "paused_child.py"), self.mark, *stages),
            **{"host": "here", "grace_s": 60.0, **keys},
        )

    def start(self, **keys: Any) -> Callable[[], None]:
        """A worker in a thread; call what is returned to end it."""
        stop = threading.Event()
        thread = threading.Thread(target=run_worker, args=(self.settings(**keys), stop))
        thread.start()

        def end() -> None:
            stop.set()
            thread.join()

        self._stops.append(end)
        return end

    def start_process(self, **keys: Any) -> subprocess.Popen[str]:
        """A worker as a process."""
        settings = self.settings(**keys)
        given = settings.model_dump(mode="json", exclude={"home", "lease", "database"}) | {
            "home": str(self.home.path),
            "database": settings.database.get_secret_value(),
            "lease_s": settings.lease.total_seconds(),
        }
        command = [sys.executable, str(SUPPORT / "worker_process.py")]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        assert process.stdin is not None
        process.stdin.write(json.dumps(given))
        process.stdin.close()

        def end() -> None:
            process.kill()
            process.wait()

        self._stops.append(end)
        return process

    def ask(self, kind: Any = "drill", **keys: Any) -> int:
        with self.database.writing() as session:
            return enqueue(session, NewJob(kind=kind, subject="it", **keys)).id

    def do(self, what: str, **payload: Any) -> int:
        return self.ask(payload={"do": what, **payload})

    def cancel(self, job: int) -> None:
        with self.database.writing() as session:
            cancel_job(session.get_one(Job, job))

    def look(self, job: int) -> JobDetail:
        with self.database.reading() as session:
            return job_detail(session, job)

    def log(self, job: int, attempt: int = 1) -> list[str]:
        with self.database.reading() as session:
            return [line.text for line in log_lines(session, job, attempt)]

    def ended(self, job: int, *states: str) -> JobDetail:
        """The job once it is in one of these states; by default, once it has ended."""
        wanted = states or ("succeeded", "failed", "cancelled", "interrupted")
        return eventually(lambda: (now := self.look(job)).state in wanted and now, f"job {job} being {wanted}")

    def at_stage(self, job: int, name: str, attempt: int = 1) -> JobDetail:
        def there() -> JobDetail | None:
            now = self.look(job)
            return now if now.attempt == attempt and any(stage.name == name for stage in now.stages) else None

        return eventually(there, f"job {job} being at {name}: {self.log(job)}")

    def children(self) -> list[psutil.Process]:
        """Every process that a child command of this bench runs in, tethers included."""
        return [
            process
            for process in psutil.process_iter(["cmdline", "status"])
            if self.mark in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE
        ]

    def leftovers(self) -> list[Path]:
        """What unfinished builds have left."""
        return [each for each in self.home.engines.glob(".building/*") if each.is_dir()]

    def close(self) -> None:
        for stop in self._stops:
            stop()
        eventually(lambda: not self.children())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a home")


@pytest.fixture
def bench(database: Database, home: Home) -> Iterator[Bench]:
    bench = Bench(database, home)
    yield bench
    bench.close()


@pytest.fixture
def desk(database: Database, home: Home) -> Desk:
    return Desk(database, home)
