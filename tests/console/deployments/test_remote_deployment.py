"""An engine loaded into a Triton server that somebody else runs: a real one, with model control and nothing in it."""

from __future__ import annotations

import shutil
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
from roundhouse.console.deployments.actions import ask_undeploy
from roundhouse.console.supervisor.process import find
from roundhouse.console.worker.kinds import deploy, undeploy
from roundhouse.errors import ServeError
from roundhouse.serve.triton.control import CONTROL_HEADER
from roundhouse.serve.triton.locate import find_triton
from roundhouse.serve.triton.server import TritonServer


@pytest.fixture(scope="module")
def triton(session_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    folder = tmp_path_factory.mktemp("theirs")
    server = TritonServer(find_triton(session_home.cache), folder, [], control=True)
    assert server.start()
    yield server
    server.stop()


@pytest.fixture
def shop(tiny_engine: Engine, session_home: Home, migrated: dict[str, URL], tmp_path: Path) -> Iterator[Workshop]:
    shutil.copy(str(migrated["sqlite"].database), tmp_path / "console.sqlite3")
    database = Database(URL.create("sqlite", database=str(tmp_path / "console.sqlite3")))
    yield Workshop.of(database, session_home, tiny_engine)
    database.close()


def theirs(triton: TritonServer, **changes: Any) -> dict[str, Any]:
    ports = triton.ports
    return {
        "kind": "remote",
        "triton_url": f"http://127.0.0.1:{ports.http}",
        "triton_grpc": f"127.0.0.1:{ports.grpc}",
        "triton_metrics": f"http://127.0.0.1:{ports.metrics}/metrics",
        "control_header": CONTROL_HEADER,
        "control": triton.control_key,
    } | changes


def test_it_is_loaded_answers_and_is_unloaded_again(triton: TritonServer, shop: Workshop) -> None:
    id_ = shop.ask("guest", **theirs(triton))
    shop.do(deploy.run)
    row = shop.row(id_)
    assert row.state == "ready"
    assert row.endpoints is not None
    assert row.endpoints["http"] == f"http://127.0.0.1:{triton.ports.http}"
    asked = {"model": "guest", "prompt": "The", "max_tokens": 3}
    answer = httpx.post(f"{row.endpoints['openai']}/completions", json=asked, trust_env=False, timeout=60)
    assert answer.json()["usage"]["completion_tokens"] == 3
    assert triton.control.ready("guest")

    taken = shop.ask("host", **theirs(triton, name="other"))  # nobody else's name is taken, nobody else's model unloaded
    del taken
    with shop.database.writing() as session:
        ask_undeploy(session, OPERATOR, id_)
    shop.claim()  # the other wish
    assert shop.do(undeploy.run) == {"was_running": True, "left": None}
    assert not triton.control.ready("guest")
    assert shop.row(id_).state == "stopped"
    assert triton.ready()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"control": "guessed"}, "restricted"),
        ({"triton_url": "http://127.0.0.1:1"}, "Triton does not answer at http://127.0.0.1:1"),
        ({"triton_metrics": "http://127.0.0.1:1/metrics"}, "Triton's metrics do not answer"),
    ],
)
def test_a_server_that_does_not_let_it_in_is_named(
    triton: TritonServer, shop: Workshop, changes: dict[str, Any], why: str
) -> None:
    id_ = shop.ask("guest", **theirs(triton, **changes))
    task = shop.task()
    with pytest.raises(ServeError, match=why):
        deploy.run(task)
    task.close()
    assert shop.row(id_).state == "failed"
    wait_for(lambda: find(shop.folder(id_)) is None, "its supervisor has ended")
