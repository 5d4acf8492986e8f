"""A worker's row, its watches, its command, and what others can see of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.console.database.database import Database
from roundhouse.console.models import EngineReplica, Worker
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.worker import registration as registrations
from roundhouse.console.worker.periodic import Periodic
from roundhouse.console.worker.registration import Registration, targets_here
from roundhouse.console.worker.service import Watch, run_worker
from roundhouse.console.worker_beside import WorkerBeside

from .conftest import Bench, eventually

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def the_worker(database: Database) -> Worker | None:
    with database.reading() as session:
        return session.scalars(select(Worker)).one_or_none()


def test_a_worker_says_what_it_is_and_that_it_ends(bench: Bench) -> None:
    end = bench.start()
    worker = eventually(lambda: the_worker(bench.database))
    assert (worker.host, worker.home, worker.pid) == ("here", str(bench.home.path), os.getpid())
    assert worker.hardware["kind"] == "cpu"
    assert {"roundhouse", "python", "torch", "nvidia-modelopt"} <= set(worker.versions)
    assert (worker.targets, worker.ended_at) == (["torch"], None)
    assert 0 < worker.disk_free <= worker.disk_total
    end()
    ended = the_worker(bench.database)
    assert ended is not None
    assert ended.ended_at is not None


def test_a_heartbeat_tells_the_time_and_the_disk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    registration = Registration(bench.settings(), bench.database)
    before = registration.begin()
    monkeypatch.setattr(registrations, "_disk", lambda folder: (5, 10))
    registration.renew()
    worker = the_worker(bench.database)
    assert worker is not None
    assert worker.seen_at > before.seen_at
    assert (worker.disk_free, worker.disk_total) == (5, 10)


def test_a_machine_without_the_packages_has_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    from roundhouse.build import extras

    monkeypatch.setitem(extras._MODULES, "serve", ("no_such_package",))
    assert targets_here() == []


@on_sqlite
def test_a_worker_tells_of_engines_that_are_there(bench: Bench, tiny_engine: Engine) -> None:
    import shutil

    shutil.copytree(tiny_engine.folder, bench.home.engines / tiny_engine.manifest.id)
    bench.start()

    def known() -> list[str]:
        with bench.database.reading() as session:
            return list(session.scalars(select(EngineReplica.engine_id)))

    assert eventually(known) == [tiny_engine.manifest.id]


@on_sqlite
def test_a_watch_that_fails_is_tried_again_and_logged_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    looked, seen_enough = [0], threading.Event()

    def look() -> None:
        looked[0] += 1
        if looked[0] > 5:
            seen_enough.set()
        if looked[0] < 3:
            raise RuntimeError("the watch is blind")
        if looked[0] < 5:
            raise OperationalError("SELECT 1", None, Exception("the database is away"))

    stop = threading.Event()
    worker = threading.Thread(target=run_worker, args=(bench.settings(), stop, [Watch("watching", look, 0.0)]))
    with caplog.at_level("INFO", "roundhouse.console.worker"):
        worker.start()
        assert seen_enough.wait(60)
        stop.set()
        worker.join()
    told = [record.getMessage().partition(": ")[2][:7] for record in caplog.records if "watching" in record.getMessage()]
    assert told == ["failed,", "(builti", "works a"]


def test_a_nudge_comes_before_the_time() -> None:
    done = threading.Semaphore(0)
    periodic = Periodic("it", done.release, 3600.0)
    periodic.start()
    for _ in range(2):
        assert done.acquire(timeout=60)
        periodic.nudge()
    periodic.stop(60)
    assert not periodic.is_alive()


def test_others_see_no_password(bench: Bench) -> None:
    worker = bench.start_process()
    job = bench.do("wait")
    bench.at_stage(job, "waiting")
    secret = bench.database.url.render_as_string(hide_password=False)
    for process in (*bench.children(), psutil.Process(worker.pid)):
        told = [*process.cmdline(), *(f"{name}={value}" for name, value in process.environ().items())]
        assert not [each for each in told if secret in each]
    (child,) = [each for each in bench.children() if not any("tether" in part for part in each.cmdline())]
    assert not [each for each in Path(f"/proc/{child.pid}/fd").iterdir() if "work-order" in os.readlink(each)]
    assert not [text for process in bench.children() for text in memory_of(process) if text]
    bench.cancel(job)
    assert bench.ended(job).state == "cancelled"


def memory_of(process: psutil.Process) -> list[str]:
    """What lies in memory that a process shares by a descriptor."""
    return [each.read_text() for each in Path(f"/proc/{process.pid}/fd").iterdir() if "memfd:" in os.readlink(each)]


@on_sqlite
def test_the_worker_beside_a_console_is_told_the_database_and_nobody_else_is(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "its home")
    secret = database.url.render_as_string(hide_password=False)
    monkeypatch.setenv("ROUNDHOUSE_DATABASE", secret)
    beside = WorkerBeside(ConsoleSettings(home=home), secret, lambda _: None)
    beside.keep_running()
    try:
        worker = eventually(lambda: the_worker(database))
        assert worker.home == str(home.path)
        process = psutil.Process(worker.pid)
        tether = process.parent()
        assert tether is not None
        assert any("tether" in part for part in tether.cmdline())
        for each in (process, tether):
            told = [*each.cmdline(), *each.environ().values(), *memory_of(each)]
            assert not [part for part in told if secret in part]
    finally:
        beside.stop()


def test_the_command_runs_until_it_is_asked_to_end(database: Database, tmp_path: Path) -> None:
    home = Home(tmp_path / "its home")
    environment = {**os.environ, "ROUNDHOUSE_DATABASE": database.url.render_as_string(hide_password=False)}
    command = [sys.executable, "-m", "roundhouse", "worker", "--home", str(home.path)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        worker = eventually(lambda: the_worker(database))
        assert (worker.home, worker.pid) == (str(home.path), process.pid)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0, log
    assert f"worker {worker.id} on {worker.host}" in log
    ended = the_worker(database)
    assert ended is not None
    assert ended.ended_at is not None
