"""What a watch tells of deployments, from folders that a test writes: it is the supervisor, and the front."""

from __future__ import annotations

import contextlib
import http.server
import json
import logging
import os
import socketserver
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from deploying import ENGINE_ID, HOST, add_engine, add_worker, in_a_thread
from sqlalchemy import func, select, update

from roundhouse.build.home import Home
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.deployments.log_rows import KEPT_LINES
from roundhouse.console.deployments.observing import GONE
from roundhouse.console.deployments.settings import DeploymentSettings
from roundhouse.console.deployments.watch import DeploymentWatch
from roundhouse.console.jobs import NewJob, enqueue
from roundhouse.console.models import Deployment, DeploymentLogLine, DeploymentSample, IntegrityRecord, Job
from roundhouse.console.supervisor import lock
from roundhouse.console.supervisor.folder import DeploymentFolder, Order, SupervisorState, SupervisorWord
from roundhouse.console.supervisor.identity import process_start
from roundhouse.serve.engine.integrity import Holder, IntegrityEvent
from roundhouse.serve.integrity_events import EventsFile

ID = "0a0b0c0d"
METRICS = 'roundhouse_engine_up{model="m"} 1\nroundhouse_guard_alive{model="m"} 1\nroundhouse_steps_total{model="m"} 7\n'


class Front(http.server.BaseHTTPRequestHandler):
    """The front and the metrics of a deployment."""

    problem: str | None = None

    def do_GET(self) -> None:
        if self.path == "/metrics":
            status, body = 200, METRICS
        else:
            status, body = (503, json.dumps({"reason": self.problem})) if self.problem else (200, "{}")
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def front(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Front, "problem", None)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Played:
    """A deployment whose supervisor is this process."""

    def __init__(self, database: Database, home: Home, front: str, id_: str = ID) -> None:
        self.database, self.home, self.id = database, home, id_
        self.endpoints = {"openai": f"{front}/v1", "metrics": f"{front}/metrics", "control_key": "geheim"}
        self.settings = DeploymentSettings(engine_id=ENGINE_ID, name="m")
        now = utc_now()
        with database.writing() as session:
            session.add(
                Deployment(
                    id=id_, name="m", engine_id=ENGINE_ID, kind="local", host=HOST, home=str(home.path),
                    settings=self.settings.model_dump(mode="json"), state="starting", created_by="olga", created_at=now,
                    changed_at=now,
                )
            )  # fmt: skip
        self.folder = DeploymentFolder(home.path / "deployments" / id_)
        self.held: int | None = None

    def begin(self, word: SupervisorWord = "ready", **more: Any) -> None:
        order = Order(deployment_id=self.id, home=self.home.path, settings=self.settings, sealed=None)
        self.folder.prepare(order, first_line=1)
        self.held = lock.take(self.folder.lock)
        self.say(word, **more)

    def say(self, word: SupervisorWord, **more: Any) -> None:
        known = {"endpoints": self.endpoints} | more
        started = process_start(os.getpid()) or 0
        self.folder.tell(SupervisorState(pid=os.getpid(), started=started, state=word, since=utc_now(), **known))

    def log(self, *lines: str) -> None:
        with (self.folder.path / "server-1.log").open("a") as file:
            file.writelines(line + "\n" for line in lines)

    def end(self) -> None:
        if self.held is not None:
            os.close(self.held)
            self.held = None

    @property
    def row(self) -> Deployment:
        with self.database.reading() as session:
            return session.scalars(select(Deployment).where(Deployment.id == self.id)).one()

    def logged(self) -> list[tuple[int, str]]:
        with self.database.reading() as session:
            wanted = select(DeploymentLogLine).where(DeploymentLogLine.deployment_id == self.id)
            return [(line.number, line.text) for line in session.scalars(wanted.order_by(DeploymentLogLine.number))]

    def job(self, kind: Any, state: str, error: str | None = None) -> None:
        with self.database.writing() as session:
            job = enqueue(session, NewJob(kind=kind, subject="m", deployment_id=self.id))
            job.state, job.error = state, error
            job.lease_until = utc_now() if state == "running" else None


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home of % all")


@pytest.fixture
def played(database: Database, home: Home, front: str) -> Iterator[Played]:
    add_engine(database, home)
    add_worker(database, home)
    played = Played(database, home, front)
    yield played
    played.end()


@pytest.fixture
def watch(database: Database, home: Home) -> Iterator[DeploymentWatch]:
    watch = DeploymentWatch(database, home, HOST)
    yield watch
    watch.close()


def test_a_deployment_that_was_there_before_is_told_as_it_is(played: Played, watch: DeploymentWatch) -> None:
    played.begin(restarts=2)
    watch.look()
    row = played.row
    assert (row.state, row.reason, row.restarts) == ("ready", None, 2)
    assert row.endpoints == {"openai": played.endpoints["openai"], "metrics": played.endpoints["metrics"]}
    assert row.seen_at is not None
    ready_at, changed_at = row.ready_at, row.changed_at
    watch.look()
    assert (played.row.ready_at, played.row.changed_at) == (ready_at, changed_at)
    with played.database.reading() as session:
        values = [each.values for each in session.scalars(select(DeploymentSample))]
    assert [each["steps"] for each in values] == [7, 7]


def test_one_that_would_not_answer_says_why(played: Played, watch: DeploymentWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    played.begin()
    watch.look()
    ready_at = played.row.ready_at
    monkeypatch.setattr(Front, "problem", "the engine process is down")
    watch.look()
    assert (played.row.state, played.row.reason) == ("unready", "the engine process is down")
    monkeypatch.setattr(Front, "problem", None)
    watch.look()
    assert (played.row.state, played.row.reason, played.row.ready_at) == ("ready", None, ready_at)
    played.say("ready", endpoints=played.endpoints | {"openai": "http://127.0.0.1:1/v1"})
    watch.look()
    assert (played.row.state, played.row.reason) == ("unready", "its OpenAI front does not answer")


@pytest.mark.parametrize("answer", [b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b""])
def test_a_port_that_answers_something_else_is_no_answer(played: Played, watch: DeploymentWatch, answer: bytes) -> None:
    class Odd(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Odd) as server:
        in_a_thread(server.serve_forever)
        odd = f"http://127.0.0.1:{server.server_address[1]}"
        played.begin(endpoints={"openai": f"{odd}/v1", "metrics": f"{odd}/metrics"})
        watch.look()
        server.shutdown()
    assert (played.row.state, played.row.reason) == ("unready", "its OpenAI front does not answer")


def test_an_answer_that_never_ends_is_cut_off(played: Played, watch: DeploymentWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with contextlib.suppress(OSError):
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    self.request.sendall(b"x" * 65536)

    monkeypatch.setattr("roundhouse.console.deployments.observing._MOST_BYTES", 2**20)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Endless) as server:
        in_a_thread(server.serve_forever)
        endless = f"http://127.0.0.1:{server.server_address[1]}"
        played.begin(endpoints={"openai": f"{endless}/v1", "metrics": f"{endless}/metrics"})
        watch.look()
        server.shutdown()
    assert played.row.state == "ready"


@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_one_that_drips_holds_up_nobody(
    played: Played, watch: DeploymentWatch, monkeypatch: pytest.MonkeyPatch, begins: bytes
) -> None:
    over = threading.Event()

    class Dripping(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with contextlib.suppress(OSError):
                self.request.sendall(begins)
                while not over.wait(0.05):
                    self.request.sendall(b"x")

    monkeypatch.setattr("roundhouse.console.deployments.observing._ANSWER_TIMEOUT_S", 0.5)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        server.daemon_threads = True
        in_a_thread(server.serve_forever)
        dripping = f"http://127.0.0.1:{server.server_address[1]}"
        played.begin(endpoints={"openai": f"{dripping}/v1", "metrics": f"{dripping}/metrics"})
        looking = in_a_thread(watch.look)
        looking.join(10)
        held_up = looking.is_alive()
        over.set()
        looking.join()
        server.shutdown()
    assert not held_up
    assert (played.row.state, played.row.reason) == ("unready", "its OpenAI front does not answer")


@pytest.mark.parametrize("word", ["starting", "restarting", "stopping"])
def test_what_the_supervisor_says_is_told(played: Played, watch: DeploymentWatch, word: SupervisorWord) -> None:
    played.begin(word, reason="Triton ended")
    watch.look()
    assert (played.row.state, played.row.reason) == (word, "Triton ended")


def test_one_that_is_gone_without_a_word_is_dead_and_keeps_its_log(played: Played, watch: DeploymentWatch) -> None:
    played.begin()
    watch.look()
    played.log("the last word")
    played.end()
    watch.look()
    row = played.row
    assert (row.state, row.reason) == ("dead", GONE)
    assert row.ended_at is not None
    with played.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(DeploymentSample)) == 0
    assert played.logged() == [(1, "the last word")]
    assert not played.folder.path.exists()


@pytest.mark.parametrize(("word", "reason"), [("failed", "no memory"), ("stopped", None)])
def test_one_that_has_ended_is_told_and_cleared_away(
    played: Played, watch: DeploymentWatch, word: SupervisorWord, reason: str | None
) -> None:
    played.begin(word, reason=reason)
    watch.look()
    assert (played.row.state, played.row.reason) == (word, reason)
    assert played.folder.path.exists()  # its supervisor is still there
    played.log("after that")
    played.end()
    watch.look()
    assert not played.folder.path.exists()
    assert played.logged() == [(1, "after that")]


def test_a_job_that_is_at_it_knows_better(played: Played, watch: DeploymentWatch) -> None:
    played.job("deploy", "running")
    watch.look()
    assert played.row.state == "starting"  # nothing is there yet
    played.begin()
    played.end()
    watch.look()
    assert played.row.state == "starting"  # the job will see that it is gone, and say why


def test_what_was_before_is_no_news_of_one_that_is_tried_again(played: Played, watch: DeploymentWatch) -> None:
    played.job("deploy", "queued")
    played.job("undeploy", "cancelled")
    watch.look()
    assert played.row.state == "starting"
    played.begin("failed", reason="no memory")
    played.end()
    watch.look()
    assert played.row.state == "starting"
    with played.database.writing() as session:
        session.execute(update(Job).values(state="cancelled"))
    watch.look()
    assert (played.row.state, played.row.reason) == ("failed", "no memory")


def test_one_that_is_being_stopped_stays_so(played: Played, watch: DeploymentWatch) -> None:
    played.begin()
    with played.database.writing() as session:
        session.execute(update(Deployment).values(state="stopping"))
    played.job("undeploy", "queued")
    watch.look()
    assert played.row.state == "stopping"
    with played.database.writing() as session:
        session.execute(update(Job).values(state="cancelled"))
    watch.look()
    assert played.row.state == "ready"  # nobody stops it any more


@pytest.mark.parametrize(("state", "error"), [("cancelled", None), ("interrupted", "its worker went away")])
def test_one_that_never_began_has_failed(played: Played, watch: DeploymentWatch, state: str, error: str | None) -> None:
    played.job("deploy", state, error)
    watch.look()
    assert played.row.state == "failed"
    assert (played.row.reason or "").startswith("it was never started: job 1 was " + state)
    assert (error or "") in (played.row.reason or "")


def test_one_that_was_thought_dead_is_found_again(played: Played, watch: DeploymentWatch) -> None:
    played.begin()
    with played.database.writing() as session:
        session.execute(update(Deployment).values(state="dead", ended_at=utc_now()))
    watch.look()
    assert (played.row.state, played.row.ended_at) == ("ready", None)


def test_log_lines_come_once_whoever_reads_them_and_the_last_are_kept(
    played: Played, watch: DeploymentWatch, database: Database, home: Home
) -> None:
    played.begin()
    played.log("one", "zero\0byte")
    watch.look()
    watch.look()
    another = DeploymentWatch(database, home, HOST)
    another.look()
    assert played.logged() == [(1, "one"), (2, "zero�byte")]
    played.log(*map(str, range(KEPT_LINES + 5)))
    watch.look()
    another.look()
    another.close()
    logged = played.logged()
    assert len(logged) == KEPT_LINES
    assert logged[-1] == (KEPT_LINES + 7, str(KEPT_LINES + 4))


def test_one_that_cannot_be_looked_at_keeps_nobody_from_looking_at_the_others(
    database: Database, home: Home, front: str, played: Played, watch: DeploymentWatch, caplog: pytest.LogCaptureFixture
) -> None:
    played.begin()
    other = Played(database, home, front, "0b0c0d0e")
    other.begin(endpoints={"no": "such endpoints"})
    watch.look()
    watch.look()
    assert (played.row.state, other.row.state) == ("ready", "starting")
    assert [record.getMessage() for record in caplog.records].count("deployment 0b0c0d0e cannot be looked at") == 1
    other.end()


def test_old_samples_go(played: Played, watch: DeploymentWatch) -> None:
    played.begin()
    old = utc_now() - timedelta(minutes=16)
    with played.database.writing() as session:
        session.add(DeploymentSample(deployment_id=ID, at=old, values={}))
    watch.look()
    with played.database.reading() as session:
        assert session.scalar(select(func.min(DeploymentSample.at)).select_from(DeploymentSample)) > old


def test_other_homes_and_hosts_are_not_its_business(played: Played, database: Database, home: Home, tmp_path: Path) -> None:
    played.begin()
    for watch in (DeploymentWatch(database, Home(tmp_path / "other"), HOST), DeploymentWatch(database, home, "elsewhere")):
        watch.look()
        watch.close()
    assert played.row.state == "starting"


def test_a_folder_that_the_database_does_not_know_is_left_and_mentioned_once(
    played: Played, watch: DeploymentWatch, caplog: pytest.LogCaptureFixture
) -> None:
    played.begin()
    with played.database.writing() as session:
        session.delete(session.get_one(Deployment, ID))
    with caplog.at_level(logging.WARNING):
        watch.look()
        watch.look()
    assert len([record for record in caplog.records if ID in record.getMessage()]) == 1
    played.end()
    watch.look()
    assert played.folder.path.exists()


def event(number: int, time: float) -> IntegrityEvent:
    holder = Holder(request_id="r2", tag=9, step=3, how="granted")
    return IntegrityEvent(
        event=f"r1/{number}/0", time=time, kind="tag", request_id="r1", answer=0, step=number, column=1, page=4,
        expected_tag=7, found_tag=9, last_holders=[holder],
    )  # fmt: skip


def test_integrity_events_come_once_and_know_their_deployment(
    played: Played, watch: DeploymentWatch, database: Database, home: Home
) -> None:
    played.begin()
    now = utc_now().timestamp()
    write = EventsFile(home.integrity_events, ENGINE_ID)
    write(event(1, now - 3600))  # before this deployment was
    write(event(2, now + 1))
    watch.look()
    watch.look()
    write(event(3, now + 2))
    with home.integrity_events.open("a") as file:
        file.write('{"event": "half')
    watch.look()
    another = DeploymentWatch(database, home, HOST)
    another.look()
    another.close()
    home.integrity_events.rename(home.path / "moved")
    write(event(4, now + 3))
    watch.look()
    with database.reading() as session:
        found = list(session.scalars(select(IntegrityRecord).order_by(IntegrityRecord.at)))
    assert [each.event for each in found] == ["r1/1/0", "r1/2/0", "r1/3/0", "r1/4/0"]
    assert [each.deployment_id for each in found] == [None, ID, ID, ID]
    assert found[1].last_holders == [{"request_id": "r2", "tag": 9, "step": 3, "how": "granted"}]
    assert msgspec.json.encode(found[1].last_holders)


def test_of_several_deployments_of_an_engine_nobody_is_named(
    played: Played, watch: DeploymentWatch, database: Database, home: Home, front: str
) -> None:
    played.begin()
    other = Played(database, home, front, id_="11111111")
    other.begin()
    EventsFile(home.integrity_events, ENGINE_ID)(event(1, utc_now().timestamp() + 1))
    watch.look()
    other.end()
    with database.reading() as session:
        (found,) = session.scalars(select(IntegrityRecord))
    assert found.deployment_id is None
