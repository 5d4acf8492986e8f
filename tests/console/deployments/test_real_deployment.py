"""Deployments for real: a tiny engine on Triton, under its detached supervisor. One is shared, and ends with the file."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from deploying import HOST, OPERATOR, Workshop, in_a_thread, wait_for
from sqlalchemy import URL

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.deployments.observing import GONE
from roundhouse.console.deployments.queries import deployment, samples
from roundhouse.console.deployments.snippets import KEY_VARIABLE, snippets
from roundhouse.console.deployments.unloading import ask_undeploy
from roundhouse.console.deployments.watch import DeploymentWatch
from roundhouse.console.jobs import Worklist
from roundhouse.console.supervisor.process import ALREADY_RUNNING, find, start
from roundhouse.console.worker.kinds import deploy, undeploy
from roundhouse.console.worker.task import TaskStoppedError
from roundhouse.errors import ServeError
from roundhouse.serve.triton.ports import bind_port

KEY = "only-those-who-have-it"
ANSWER_TIMEOUT_S = 60
LONG, ANSWERS = 480, 8


@pytest.fixture(scope="module")
def shop(
    tiny_engine: Engine, session_home: Home, migrated: dict[str, URL], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workshop]:
    file = tmp_path_factory.mktemp("console") / "console.sqlite3"
    shutil.copy(str(migrated["sqlite"].database), file)
    database = Database(URL.create("sqlite", database=str(file)))
    yield Workshop.of(database, session_home, tiny_engine)
    database.close()


@pytest.fixture(scope="module")
def served(shop: Workshop) -> Iterator[str]:
    """The id of one deployment."""
    id_ = shop.ask(key=KEY, overrides={"max_seq_len": 512})
    shop.do(deploy.run)
    yield id_
    running = find(shop.folder(id_))
    if running is not None:  # a test failed
        os.kill(running.pid, signal.SIGKILL)


@pytest.fixture
def watch(shop: Workshop) -> Iterator[DeploymentWatch]:
    watch = DeploymentWatch(shop.database, shop.home, HOST)
    yield watch
    watch.close()


def ask(at: str, name: str = "tiny", **body: object) -> httpx.Response:
    asked = {"model": name, "prompt": "The", "max_tokens": 4, **body}
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx.post(f"{at}/completions", json=asked, headers=headers, trust_env=False, timeout=ANSWER_TIMEOUT_S)


def left_over(pid: int) -> list[str]:
    folders = (Path("/dev/shm"), Path(tempfile.gettempdir()))
    return [str(path) for folder in folders for path in folder.glob(f"roundhouse_{pid}_*")]


def triton_of(pid: int) -> psutil.Process:
    return next(each for each in psutil.Process(pid).children(recursive=True) if each.name() == "tritonserver")


def test_the_job_ends_when_it_answers_and_has_told_what_it_did(shop: Workshop, served: str) -> None:
    row = shop.row(served)
    assert (row.state, row.reason, row.restarts) == ("ready", None, 0)
    assert row.endpoints is not None
    assert {"http", "grpc", "metrics", "openai", "chat"} <= row.endpoints.keys()
    assert "control_key" not in row.endpoints
    assert [event.name for event in shop.events if hasattr(event, "what")] == ["prepare", "start", "ready"]
    assert any("tiny" in line and "loaded" in line for line in shop.lines)
    assert KEY not in "\n".join(shop.lines)
    assert ask(row.endpoints["openai"]).json()["usage"]["completion_tokens"] == 4
    assert httpx.get(f"{row.endpoints['openai']}/models", trust_env=False).status_code == 401


def test_secrets_are_nowhere_in_clear(shop: Workshop, served: str) -> None:
    folder = shop.folder(served)
    assert all(KEY.encode() not in path.read_bytes() for path in folder.path.iterdir())
    assert folder.path.stat().st_mode & 0o077 == 0
    assert (folder.path / "settings.json").stat().st_mode & 0o077 == 0
    running = find(folder)
    assert running is not None
    for process in [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]:
        assert KEY not in " ".join(process.cmdline())


@pytest.mark.parametrize("name", ["curl", "openai", "tritonclient", "triton-curl"])
def test_the_snippets_run_as_they_are(shop: Workshop, served: str, name: str) -> None:
    with shop.database.reading() as session:
        detail = deployment(session, served)
    snippet = next(each for each in snippets(detail) if each.name == name)
    assert KEY not in snippet.text
    command = [sys.executable, "-c", snippet.text] if snippet.language == "python" else ["bash", "-c", snippet.text]
    environment = {**os.environ, KEY_VARIABLE: KEY}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=ANSWER_TIMEOUT_S)
    assert ended.returncode == 0, ended.stderr
    if name == "curl":
        assert json.loads(ended.stdout)["choices"][0]["message"]["role"] == "assistant"
    elif name == "triton-curl":
        assert ended.stdout.startswith("data: ")
    else:
        assert len(ended.stdout.strip()) > 8


def test_a_watch_that_is_new_tells_everything(shop: Workshop, served: str, watch: DeploymentWatch) -> None:
    begin = utc_now()
    for _ in range(2):
        watch.look()
    with shop.database.reading() as session:
        detail = deployment(session, served)
        told = samples(session, served, begin)
    assert (detail.state, detail.reason) == ("ready", None)
    assert detail.seen_at is not None
    assert detail.uptime_s is not None
    assert len(told) == 2
    assert told[-1].values.generated_tokens >= 4
    assert told[-1].values.pages_free > 0
    assert told[-1].values.guard_alive
    log = shop.log(served)
    assert [number for number, _ in log] == list(range(1, len(log) + 1))
    assert any("loaded" in line for _, line in log)
    another = DeploymentWatch(shop.database, shop.home, HOST)
    another.look()
    another.close()
    assert shop.log(served)[: len(log)] == log


def test_nobody_starts_it_twice(shop: Workshop, served: str) -> None:
    folder = shop.folder(served)
    running = find(folder)
    assert running is not None
    assert start(folder) == running
    command = [sys.executable, "-m", "roundhouse.console.supervisor", str(folder.path)]
    assert subprocess.run(command, check=False).returncode == ALREADY_RUNNING
    assert find(folder) == running


def test_triton_that_dies_is_started_again_where_it_was(shop: Workshop, served: str, watch: DeploymentWatch) -> None:
    before = shop.row(served).endpoints
    running = find(shop.folder(served))
    assert running is not None
    assert before is not None
    triton_of(running.pid).kill()
    wait_for(lambda: (at := shop.folder(served).state()) is not None and at.state == "restarting", "it noticed")
    watch.look()
    row = shop.row(served)
    assert row.state == "restarting"
    assert "Triton ended with code 137" in (row.reason or "")
    wait_for(lambda: (at := shop.folder(served).state()) is not None and at.state == "ready", "it is back")
    watch.look()
    row = shop.row(served)
    assert (row.state, row.restarts, row.endpoints) == ("ready", 1, before)
    assert find(shop.folder(served)).pid == running.pid  # type: ignore[union-attr]
    assert ask(before["openai"]).status_code == 200


def test_stopping_drains_and_leaves_nothing(shop: Workshop, served: str, watch: DeploymentWatch) -> None:
    at = shop.row(served).endpoints
    running = find(shop.folder(served))
    assert at is not None
    assert running is not None
    family = psutil.Process(running.pid).children(recursive=True)
    begun, events = threading.Event(), []
    asked = {"model": "tiny", "prompt": "The", "max_tokens": LONG, "ignore_eos": True, "n": ANSWERS, "stream": True}

    def stream() -> None:
        headers = {"authorization": f"Bearer {KEY}"}
        options = {"headers": headers, "trust_env": False, "timeout": ANSWER_TIMEOUT_S}
        with httpx.stream("POST", f"{at['openai']}/completions", json=asked, **options) as response:
            for line in response.iter_lines():
                events.append(line)
                begun.set()

    asking = in_a_thread(stream)
    assert begun.wait(ANSWER_TIMEOUT_S)
    with shop.database.writing() as session:
        ask_undeploy(session, OPERATOR, served, drain_s=30)
    watch.look()
    assert shop.row(served).state == "stopping"  # though its supervisor has not heard of it
    assert shop.do(undeploy.run) == {"was_running": True, "left": None}
    asking.join(ANSWER_TIMEOUT_S)
    assert sum('"finish_reason": "length"' in line for line in events) == ANSWERS
    assert events[-2] == "data: [DONE]"
    assert shop.row(served).state == "stopped"
    assert not shop.folder(served).path.exists()
    assert [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []
    assert left_over(running.pid) == []
    assert shop.log(served)[-1][1] == "supervisor: stopped"


def test_a_supervisor_that_is_killed_takes_everything_with_it_and_is_called_dead(
    shop: Workshop, watch: DeploymentWatch
) -> None:
    id_ = shop.ask("short-lived")
    shop.do(deploy.run)
    running = find(shop.folder(id_))
    assert running is not None
    family = psutil.Process(running.pid).children(recursive=True)
    logged = len(shop.folder(id_).path.glob("server-*.log").__next__().read_text().splitlines())
    os.kill(running.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    watch.look()
    row = shop.row(id_)
    assert (row.state, row.reason) == ("dead", GONE)
    assert row.ended_at is not None
    assert len(shop.log(id_)) == logged
    assert left_over(running.pid) == []
    assert not shop.folder(id_).path.exists()
    with shop.database.writing() as session, pytest.raises(Exception, match="has ended: dead"):
        ask_undeploy(session, OPERATOR, id_)


def test_a_start_that_is_cancelled_is_stopped(shop: Workshop) -> None:
    id_ = shop.ask("never")
    task = shop.task()
    with shop.database.writing() as session:
        ask_undeploy(session, OPERATOR, id_)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            deploy.run(task)
        except TaskStoppedError as error:
            failures.append(error)

    working = in_a_thread(work)
    wait_for(lambda: find(shop.folder(id_)) is not None, "its supervisor is there")
    task.stopping.set()
    working.join(ANSWER_TIMEOUT_S)
    task.close()
    assert len(failures) == 1
    assert (shop.row(id_).state, shop.row(id_).reason) == ("stopped", "its start was cancelled")
    assert not shop.folder(id_).path.exists()
    Worklist(shop.database).end(task.claim, "cancelled")
    assert shop.do(undeploy.run)["was_running"] is False  # what stood in line for it finds nothing to do


def test_a_start_that_fails_says_why_and_is_not_tried_again(shop: Workshop, watch: DeploymentWatch) -> None:
    taken = bind_port("127.0.0.1", 0)
    port = taken.getsockname()[1]
    taken.listen()
    try:
        id_ = shop.ask("no-port", openai=port)
        task = shop.task()
        with pytest.raises(ServeError, match=f"cannot listen on 127.0.0.1:{port}"):
            deploy.run(task)
        task.close()
    finally:
        taken.close()
    row = shop.row(id_)
    assert row.state == "failed"
    assert f"cannot listen on 127.0.0.1:{port}" in (row.reason or "")
    assert "Give another port" in (row.hint or "")
    wait_for(lambda: not shop.folder(id_).is_watched, "its supervisor has ended")
    watch.look()
    assert not shop.folder(id_).path.exists()
    assert any("cannot listen" in line for _, line in shop.log(id_))
