from __future__ import annotations

import json
import os
import queue
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from roundhouse.errors import ServeError
from roundhouse.serve.engine.page_holders import PageHolders
from roundhouse.serve.engine.request import Chunk, Failure, Guide, Output, Request, SamplingParams
from roundhouse.serve.last_words import failure_line
from roundhouse.serve.process.client import EngineProcess
from roundhouse.serve.process.messages import Pages, Ready
from roundhouse.serve.process.pacing import Pacer
from roundhouse.serve.process.starting import restart_delay

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


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {TIMEOUT_S} s"
        time.sleep(0.01)


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


def test_every_field_reaches_the_engine(engine: EngineProcess) -> None:
    sent = Request(
        request_id="r",
        prompt="show",
        sampling=SamplingParams(
            max_tokens=3,
            min_tokens=1,
            temperature=0.5,
            top_p=0.25,
            top_k=4,
            min_p=0.125,
            repetition_penalty=1.5,
            presence_penalty=-0.5,
            frequency_penalty=2.0,
            logit_bias={7: -100.0, 8: 1.5},
            seed=2**64 - 1,
            stop=("a", "é"),
            stop_token_ids=(5, 6),
            ignore_eos=True,
            logprobs=2,
            guide=Guide(kind="json_schema", text="{}"),
        ),
        cache_salt="s",
        priority=-2,
        deadline_s=1.5,
    )
    outputs: queue.Queue[Output] = queue.Queue()
    engine.submit(sent, outputs.put)
    answer = outputs.get(timeout=TIMEOUT_S)
    assert isinstance(answer, Chunk)
    assert msgspec.json.decode(answer.text, type=Request) == msgspec.structs.replace(sent, request_id="")


def test_every_answer_of_a_request_comes_whole_and_in_order(engine: EngineProcess) -> None:
    outputs: queue.Queue[Output] = queue.Queue()
    engine.submit(Request(request_id="r", prompt="count", sampling=SamplingParams(n=3, max_tokens=50, logprobs=0)), outputs.put)
    answers: dict[int, list[Chunk]] = {}
    while sum(chunks[-1].finish_reason is not None for chunks in answers.values()) < 3:
        chunk = outputs.get(timeout=TIMEOUT_S)
        assert isinstance(chunk, Chunk)
        answers.setdefault(chunk.index, []).append(chunk)
    for chunks in answers.values():
        assert "".join(chunk.text for chunk in chunks) == "".join(f"{number} " for number in range(1, 51))
        assert [token for chunk in chunks for token in chunk.token_ids] == list(range(1, 51))
        assert [each.token_id for chunk in chunks for each in chunk.logprobs or ()] == list(range(1, 51))
    assert not engine.cancel("r")


def test_cancel_reaches_the_engine(engine: EngineProcess) -> None:
    outputs = ask(engine, "hang")
    assert not engine.cancel("unknown")
    assert engine.cancel("r")
    assert outputs.get(timeout=TIMEOUT_S) == Failure(request_id="r", code="cancelled", message="cancelled")


def test_a_rank_that_could_not_start_is_told_and_not_what_its_launcher_says_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, ranks = {"target": "tensorrt"}, {"tensor_parallel": 2, "pipeline_parallel": 1}
    (tmp_path / "engine.json").write_text(json.dumps({"recipe": recipe, "compiled": ranks}))
    launcher = tmp_path / "mpirun"
    said = failure_line(ServeError("rank 1 has no GPU", hint="Give it one."))
    told = failure_line(ServeError("another rank has ended"))
    banner = "-" * 80
    launcher.write_text(
        f"#!/bin/sh\ncat <<'end'\nlibrary: hello\n{said}{told}{banner}\nmpirun detected an error\n{banner}\nend\n"
    )
    launcher.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(ServeError) as refused:
        EngineProcess(tmp_path).start()
    assert refused.value.message == "the engine process could not start: rank 1 has no GPU Give it one."


def fail(value: object) -> None:
    raise ValueError(f"no place for {value}")


def test_callbacks_that_raise_end_nothing_but_their_request(fake_python: str) -> None:
    outputs: queue.Queue[Output] = queue.Queue()

    def fail_and_keep(output: Output) -> None:
        outputs.put(output)
        fail(output)

    process = EngineProcess(Path("engine"), python=fake_python, on_state=fail, on_status=fail, on_log=fail)
    process.start()
    try:
        process.submit(Request(request_id="begun", prompt="begin"), fail_and_keep)
        assert isinstance(outputs.get(timeout=TIMEOUT_S), Chunk)
        assert outputs.get(timeout=TIMEOUT_S) == Failure(request_id="begun", code="cancelled", message="cancelled")
        process.submit(Request(request_id="done", prompt="done"), fail)
        process.submit(Request(request_id="dying", prompt="die"), fail)  # a failure that cannot be told
        wait_for(lambda: process.pid is None)
        wait_for(lambda: process.pid is not None)
        assert isinstance(ask(process, "again").get(timeout=TIMEOUT_S), Chunk)
    finally:
        process.stop()


def test_a_request_that_cannot_be_sent_is_not_live(engine: EngineProcess) -> None:
    with pytest.raises(UnicodeEncodeError):
        ask(engine, "\ud800", "r")
    assert not engine.cancel("r")
    assert isinstance(ask(engine, "next").get(timeout=TIMEOUT_S), Chunk)


def test_a_process_that_sends_what_is_no_message_is_replaced(engine: EngineProcess, logged: list[str]) -> None:
    first_pid = engine.pid
    assert first_pid is not None
    assert isinstance(ask(engine, "garble").get(timeout=TIMEOUT_S), Failure)
    wait_for(lambda: engine.pid not in (None, first_pid))
    assert not running(first_pid)
    assert isinstance(ask(engine, "again").get(timeout=TIMEOUT_S), Chunk)
    assert any("no message" in line for line in logged)


def test_states_are_told_as_they_change(fake_python: str) -> None:
    states: queue.Queue[Ready | None] = queue.Queue()
    process = EngineProcess(Path("engine"), python=fake_python, on_state=states.put)
    ready = process.start()
    assert ready.guard == "tags"
    assert states.get(timeout=TIMEOUT_S) == ready
    pid = process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert states.get(timeout=TIMEOUT_S) is None
    assert states.get(timeout=TIMEOUT_S) == ready
    process.stop()
    assert states.get(timeout=TIMEOUT_S) is None


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


def ask_pages(engine: EngineProcess) -> queue.Queue[PageHolders | None]:
    told: queue.Queue[PageHolders | None] = queue.Queue()
    engine.ask_pages(told.put)
    return told


def test_who_holds_each_page_is_told_to_everybody_who_asks(engine: EngineProcess, logged: list[str]) -> None:
    def broken(_: PageHolders | None) -> None:
        raise ValueError("nobody listens")

    ask(engine, "hang", "held")
    engine.ask_pages(broken)
    for told in (ask_pages(engine), ask_pages(engine)):
        holders = told.get(timeout=TIMEOUT_S)
        assert holders is not None
        assert [group.requests for group in holders.groups] == [[], ["held"]]
    assert "an answer about pages could not be taken: ValueError('nobody listens')" in logged
    assert ask_pages(engine).get(timeout=TIMEOUT_S) is not None  # and it can be asked again


def test_while_a_question_about_pages_is_under_way_it_is_not_asked_again(engine: EngineProcess) -> None:
    ask(engine, "keep quiet").get(timeout=TIMEOUT_S)
    connection = engine._connection
    assert connection is not None
    sent: list[object] = []
    send = connection.send
    connection.send = lambda message: (sent.append(message), send(message))  # type: ignore[method-assign,func-returns-value,assignment]
    told = [ask_pages(engine) for _ in range(3)]
    assert sent == [Pages()]
    ask(engine, "die", "d")
    assert [each.get(timeout=TIMEOUT_S) for each in told] == [None] * 3


def test_who_asks_about_pages_while_the_engine_is_down_hears_that(fake_python: str) -> None:
    process = EngineProcess(Path("engine"), python=fake_python)
    assert ask_pages(process).get(timeout=TIMEOUT_S) is None


def test_restart_delays_double_up_to_half_a_minute() -> None:
    assert [restart_delay(deaths) for deaths in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


def test_when_outputs_can_no_longer_be_received_everybody_is_told(
    engine: EngineProcess, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> list[Output]:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(Pacer, "take", broken)
    outputs = ask(engine, "one")
    failure = outputs.get(timeout=TIMEOUT_S)
    assert isinstance(failure, Failure)
    assert failure.code == "unavailable"
    assert "outputs can no longer be received: ZeroDivisionError('a fault of ours')" in logged
    assert engine.pid is None
    refused = ask(engine, "two").get(timeout=TIMEOUT_S)
    assert isinstance(refused, Failure)
    assert refused.code == "unavailable"
