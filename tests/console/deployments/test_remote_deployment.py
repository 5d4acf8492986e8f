"""An engine loaded into a Triton server that somebody else runs: a real one, with model control and nothing in it."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from deploying import OPERATOR, Workshop, wait_for
from sqlalchemy import URL

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.console.database.database import Database
from roundhouse.console.deployments.unloading import ask_undeploy
from roundhouse.console.supervisor.process import find
from roundhouse.console.worker.kinds import deploy, undeploy
from roundhouse.errors import ServeError
from roundhouse.serve.private_folder import within_plain_path
from roundhouse.serve.remote import RemoteDeployment, RemoteTriton
from roundhouse.serve.triton.control import CONTROL_HEADER
from roundhouse.serve.triton.locate import find_triton
from roundhouse.serve.triton.server import TritonServer


@pytest.fixture(scope="module")
def triton(session_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "models").mkdir()
    server = TritonServer(within_plain_path(find_triton(session_home.cache), folder), folder / "models", [], control=True)
    assert server.start()
    yield server
    server.stop()


@pytest.fixture
def shop(tiny_engine: Engine, session_home: Home, migrated: dict[str, URL], tmp_path: Path) -> Iterator[Workshop]:
    shutil.copy(str(migrated["sqlite"].database), tmp_path / "console.sqlite3")
    database = Database(URL.create("sqlite", database=str(tmp_path / "console.sqlite3")))
    yield Workshop.of(database, session_home, tiny_engine)
    database.close()


def remote(triton: TritonServer, **changes: Any) -> RemoteTriton:
    known = {
        "http": f"http://127.0.0.1:{triton.ports.http}",
        "grpc": f"127.0.0.1:{triton.ports.grpc}",
        "metrics": f"http://127.0.0.1:{triton.ports.metrics}/metrics",
        "control": {CONTROL_HEADER: triton.control_key},
    }
    return RemoteTriton(**known | changes)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"control": {CONTROL_HEADER: "guessed"}}, "restricted"),
        ({"http": "http://127.0.0.1:1"}, "Triton does not answer at http://127.0.0.1:1"),
        ({"metrics": "http://127.0.0.1:1/metrics"}, "Triton's metrics do not answer"),
    ],
)
def test_a_server_that_does_not_let_it_in_is_named(
    triton: TritonServer, tiny_engine: Engine, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(ServeError, match=why):
        RemoteDeployment(tiny_engine, "guest", "me", remote(triton, **changes)).start()
    assert not triton.control.ready("guest")


def test_it_is_loaded_answers_and_is_unloaded_when_it_ends(triton: TritonServer, tiny_engine: Engine) -> None:
    served = RemoteDeployment(tiny_engine, "guest", "me", remote(triton))
    try:
        assert served.start()
        assert complete(served.endpoints.openai) == 3
        served.require_running()
        with pytest.raises(ServeError, match="serves another model as guest"):
            RemoteDeployment(tiny_engine, "guest", "somebody else", remote(triton)).start()
        RemoteDeployment.unload(triton.control, "guest", "somebody else")
        assert triton.control.ready("guest")  # nobody unloads another's
    finally:
        served.close()
    assert not triton.control.ready("guest")
    served.close()


def test_a_job_stops_one_whose_supervisor_was_killed(triton: TritonServer, shop: Workshop) -> None:
    at = remote(triton)
    id_ = shop.ask(
        "visitor",
        kind="remote",
        triton_url=at.http,
        triton_grpc=at.grpc,
        triton_metrics=at.metrics,
        control_header=CONTROL_HEADER,
        control=triton.control_key,
    )
    shop.do(deploy.run)
    row = shop.row(id_)
    assert row.state == "ready"
    assert row.endpoints is not None
    assert complete(row.endpoints["openai"], "visitor") == 3
    running = find(shop.folder(id_))
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    wait_for(lambda: find(shop.folder(id_)) is None, "it is gone")
    assert triton.control.ready("visitor")
    with shop.database.writing() as session:
        ask_undeploy(session, OPERATOR, id_)
    assert shop.do(undeploy.run) == {"was_running": False, "left": None}
    assert not triton.control.ready("visitor")
    assert shop.row(id_).state == "stopped"
    assert not shop.folder(id_).path.exists()


def complete(openai: str, model: str = "guest") -> int:
    """Ask for three tokens; how many came."""
    asked = {"model": model, "prompt": "The", "max_tokens": 3}
    answer = httpx.post(f"{openai}/completions", json=asked, trust_env=False, timeout=60)
    tokens: int = answer.json()["usage"]["completion_tokens"]
    return tokens
