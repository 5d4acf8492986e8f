from __future__ import annotations

import os
import queue
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundhouse.errors import ServeError
from roundhouse.serve.engine.request import Chunk, Failure, Output, Request
from roundhouse.serve.process.client import EngineProcess, restart_delay

TIMEOUT_S = 30


@pytest.fixture
def fake_python(tmp_path: Path) -> str:
    """An interpreter that runs the stand-in engine whatever module it is asked for."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("fake_engine.py")} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def logged() -> list[str]:
    return []


@pytest.fixture
def engine(fake_python: str, logged: list[str]) -> Iterator[EngineProcess]:
    process = EngineProcess(Path("engine"), python=fake_python, on_log=logged.append)
    process.start()
    yield process
    process.stop()


def ask(engine: EngineProcess, prompt: str, request_id: str = "r") -> queue.Queue[Output]:
    outputs: queue.Queue[Output] = queue.Queue()
    engine.submit(Request(request_id=request_id, prompt=prompt), outputs.put)
    return outputs


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_answers_reach_the_request_they_belong_to(engine: EngineProcess) -> None:
    first, second = ask(engine, "one", "a"), ask(engine, "two", "b")
    answers = first.get(timeout=TIMEOUT_S), second.get(timeout=TIMEOUT_S)
    assert [(answer.request_id, answer.text) for answer in answers if isinstance(answer, Chunk)] == [("a", "one"), ("b", "two")]


def test_cancel_reaches_the_engine(engine: EngineProcess) -> None:
    outputs = ask(engine, "hang")
    engine.cancel("unknown")
    engine.cancel("r")
    assert outputs.get(timeout=TIMEOUT_S) == Failure(request_id="r", code="cancelled", message="cancelled")


def test_a_dead_engine_fails_its_requests_and_is_started_again(engine: EngineProcess, logged: list[str]) -> None:
    first_pid = engine.pid
    hanging = ask(engine, "hang", "a")
    dying = ask(engine, "die", "b")
    for outputs in (hanging, dying):
        failure = outputs.get(timeout=TIMEOUT_S)
        assert isinstance(failure, Failure)
        assert failure.code == "unavailable"
    while True:  # unavailable until the next one stands
        answer = ask(engine, "again").get(timeout=TIMEOUT_S)
        if isinstance(answer, Chunk):
            break
    assert engine.pid != first_pid
    assert any("starting it again" in line for line in logged)


def test_a_failed_start_says_what_the_process_said(fake_python: str) -> None:
    process = EngineProcess(Path("broken"), python=fake_python)
    with pytest.raises(ServeError, match="could not start: the engine folder is broken"):
        process.start()


def test_a_missing_interpreter_is_named() -> None:
    process = EngineProcess(Path("engine"), python="/nowhere/python")
    with pytest.raises(ServeError, match="/nowhere/python could not be started"):
        process.start()
    process.stop()


def test_stop_ends_the_process_fails_requests_and_leaves_no_sockets(fake_python: str) -> None:
    before = set(Path(tempfile.gettempdir()).glob("rh-*"))
    process = EngineProcess(Path("engine"), python=fake_python)
    process.start()
    pid = process.pid
    assert pid is not None
    outputs = ask(process, "hang")
    process.stop()
    failure = outputs.get(timeout=TIMEOUT_S)
    assert isinstance(failure, Failure)
    assert "stopping" in failure.message
    assert not running(pid)
    assert set(Path(tempfile.gettempdir()).glob("rh-*")) == before


def test_stop_works_while_a_restart_is_due(engine: EngineProcess) -> None:
    pid = engine.pid
    assert pid is not None
    outputs = ask(engine, "hang")
    os.kill(pid, signal.SIGKILL)
    assert isinstance(outputs.get(timeout=TIMEOUT_S), Failure)
    engine.stop()
    late = ask(engine, "late").get(timeout=TIMEOUT_S)
    assert isinstance(late, Failure)


def test_restart_delays_double_up_to_half_a_minute() -> None:
    assert [restart_delay(deaths) for deaths in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
