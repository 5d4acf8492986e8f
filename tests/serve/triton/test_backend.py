from __future__ import annotations

import json
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roundhouse.serve.engine.page_holders import PageHolders
from roundhouse.serve.engine.request import Request, SamplingParams
from roundhouse.serve.engine.status import Status
from roundhouse.serve.page_map import PageMap, PageRun
from roundhouse.serve.triton.backend import TritonPythonModel
from roundhouse.serve.triton.health import DOWN, STUCK, UNGUARDED

FAKE_ENGINE = Path(__file__).parent.parent / "process" / "fake_engine.py"


def arguments(tmp_path: Path, engine: str) -> dict[str, str]:
    """What Triton passes to ``initialize``, with a stand-in for the engine process."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE_ENGINE} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    parameters = {"engine": engine, "python": str(python), "overrides": "{}"}
    config = {"parameters": {key: {"string_value": value} for key, value in parameters.items()}}
    return {"model_config": json.dumps(config), "model_name": "m"}


@pytest.fixture
def model(triton: Any, tmp_path: Path) -> Iterator[TritonPythonModel]:
    model = TritonPythonModel()
    model.initialize(arguments(tmp_path, "engine"))
    yield model
    model.finalize()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen within 30 s"
        time.sleep(0.01)


def test_requests_are_answered_through_their_own_sender(model: TritonPythonModel, triton: Any) -> None:
    requests = [triton.Request("one"), triton.Request("two", streaming=True)]
    model.execute(requests)
    wait_for(lambda: all(request.sender.final for request in requests))
    assert [request.sender.responses[-1].tensors["text_output"] for request in requests] == [[b"one"], [b"two"]]


def test_a_bad_request_fails_alone(model: TritonPythonModel, triton: Any) -> None:
    bad, good = triton.Request("bad", parameters='{"max_tokns": 1}'), triton.Request("good")
    model.execute([bad, good])
    wait_for(lambda: good.sender.final)
    assert bad.sender.final
    assert bad.sender.responses[0].error.text.startswith("[invalid_request] unknown parameter")


def test_whatever_goes_wrong_with_one_request_its_batch_is_served(
    model: TritonPythonModel, triton: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = model._engine.submit

    def choosy_submit(request: Any, on_output: Any) -> None:
        if request.prompt == "unsendable":
            raise ValueError("it cannot be encoded")
        submit(request, on_output)

    monkeypatch.setattr(model._engine, "submit", choosy_submit)
    unreadable = triton.Request("x", parameters="broken")
    malformed = triton.Request("x", parameters="{")
    unsendable = triton.Request("unsendable")
    unanswerable = triton.Request("x", parameters='{"max_tokns": 1}')
    unanswerable.sender.broken = True
    good = triton.Request("good")
    model.execute([unreadable, malformed, unsendable, unanswerable, good])
    for request in (unreadable, malformed, unsendable):
        assert request.sender.final
        assert request.sender.responses[0].error.kind == "internal"
    wait_for(lambda: good.sender.final)
    assert good.sender.responses[0].tensors["text_output"] == [b"good"]


def test_a_response_that_cannot_be_sent_stops_no_other(model: TritonPythonModel, triton: Any) -> None:
    begun, done, good = triton.Request("begin", streaming=True), triton.Request("done"), triton.Request("good")
    begun.sender.broken = done.sender.broken = True
    model.execute([begun, done, good])
    wait_for(lambda: good.sender.final)
    assert good.sender.responses[0].tensors["text_output"] == [b"good"]


def test_a_cancel_that_comes_before_the_engine_has_the_request_is_not_lost(
    model: TritonPythonModel, triton: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = model._engine
    submit, cancel = engine.submit, engine.cancel
    early = threading.Event()

    def watched_cancel(request_id: str) -> bool:
        passed_on = cancel(request_id)
        early.set()
        return passed_on

    def slow_submit(request: Any, on_output: Any) -> None:
        assert early.wait(timeout=30)
        submit(request, on_output)

    monkeypatch.setattr(engine, "cancel", watched_cancel)
    monkeypatch.setattr(engine, "submit", slow_submit)
    request = triton.Request("hang")
    request.sender.gone = True
    model.execute([request])
    wait_for(lambda: request.sender.final)
    assert request.sender.responses[-1].error.kind == "cancelled"


def test_stop_ends_all_requests_with_that_id_and_is_answered_itself(model: TritonPythonModel, triton: Any) -> None:
    ended = [triton.Request("hang", request_id="mine"), triton.Request("begin", streaming=True, request_id="mine")]
    others = [triton.Request("hang", request_id="theirs"), triton.Request("hang")]
    stop = triton.Request("x", parameters='{"stop": true}', request_id="mine")
    model.execute([*ended, *others, stop])
    wait_for(lambda: all(request.sender.final for request in ended))
    assert [request.sender.responses[-1].error.kind for request in ended] == ["cancelled", "cancelled"]
    assert stop.sender.final
    assert stop.sender.responses[0].tensors == {"text_output": [b""], "finish_reason": [b"cancelled"]}
    assert not any(request.sender.final for request in others)
    again = triton.Request("x", parameters='{"stop": true}', request_id="mine")
    model.execute([again])
    assert again.sender.responses[0].error is None


def test_stop_without_an_id_is_an_error(model: TritonPythonModel, triton: Any) -> None:
    live, stop = triton.Request("hang"), triton.Request("x", parameters='{"stop": true}')
    model.execute([live, stop])
    assert stop.sender.responses[0].error.text.startswith("[invalid_request] stop needs a request id")
    assert not live.sender.final


def ask_pages(model: TritonPythonModel, triton: Any) -> Any:
    asked = triton.Request("x", parameters='{"pages": true}', request_id="whoever")
    model.execute([asked])
    wait_for(lambda: asked.sender.final)
    return asked.sender.responses[0]


def test_pages_are_told_with_the_ids_that_clients_know(model: TritonPythonModel, triton: Any) -> None:
    secret = "0123456789abcdef" * 2
    ids = ["mine", f"the-front-s-{secret}", "x" * 200, "", secret]
    model.execute([triton.Request("hang", request_id=client_id) for client_id in ids])
    (told,) = ask_pages(model, triton).tensors["page_map"]
    map_ = msgspec.json.decode(told, type=PageMap)
    assert map_.pages == 4
    assert map_.runs == [PageRun(2, "used", 7, 1), PageRun(1, "shared", 9, 0), PageRun(1, "free", 0, -1)]
    cached, held = map_.held_by
    assert (cached.requests, cached.prefix_cache) == ([], True)
    assert [each.client_id for each in held.requests] == ["mine", "the-front-s", "x" * 64, "", secret]
    assert [each.request_id for each in held.requests] == list(model._live)


def test_pages_of_an_engine_that_is_down_are_not_told(
    model: TritonPythonModel, triton: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model._engine, "ask_pages", lambda on_pages: on_pages(None))
    error = ask_pages(model, triton).error
    assert (error.kind, error.text) == ("unavailable", f"[unavailable] {DOWN}; try again in a moment")


def test_an_answer_about_pages_that_cannot_be_read_is_an_answer_all_the_same(
    model: TritonPythonModel, triton: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = PageHolders(pages=1, lengths=b"\x01", states=b"", tags=b"", held_by=b"", groups=[])
    monkeypatch.setattr(model._engine, "ask_pages", lambda on_pages: on_pages(broken))
    assert ask_pages(model, triton).error.kind == "internal"


def test_every_option_reaches_the_engine(model: TritonPythonModel, triton: Any) -> None:
    parameters = {"n": 1, "min_tokens": 2, "cache_salt": "s", "priority": 3, "deadline_s": 1.5, "logprobs": 1}
    request = triton.Request("show", parameters=json.dumps(parameters))
    model.execute([request])
    wait_for(lambda: request.sender.final)
    (text,) = request.sender.responses[0].tensors["text_output"]
    seen = msgspec.json.decode(text, type=Request)
    assert seen.sampling == SamplingParams(n=1, min_tokens=2, logprobs=1)
    assert (seen.cache_salt, seen.priority, seen.deadline_s) == ("s", 3, 1.5)


def test_a_request_with_several_answers_ends_with_the_last_of_them(model: TritonPythonModel, triton: Any) -> None:
    streamed = triton.Request("count", parameters='{"n": 2, "max_tokens": 5}', streaming=True)
    whole = triton.Request("count", parameters='{"n": 2, "max_tokens": 5, "return_cumulative_logprob": true}')
    model.execute([streamed, whole])
    wait_for(lambda: streamed.sender.final and whole.sender.final)
    said = {0: b"", 1: b""}
    for response in streamed.sender.responses:
        said[response.tensors["index"][0]] += response.tensors["text_output"][0]
    assert said == {0: b"1 2 3 4 5 ", 1: b"1 2 3 4 5 "}
    (answer,) = whole.sender.responses
    assert answer.tensors["text_output"] == [said[0], said[1]]
    assert answer.tensors["cumulative_logprob"] == [-2.5, -2.5]
    assert answer.tensors["cached_tokens"] == [0, 1]


def test_while_no_token_comes_out_requests_are_refused_at_once(
    model: TritonPythonModel, triton: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model._watch, "problem", lambda: STUCK)
    request = triton.Request("good")
    model.execute([request])
    assert request.sender.responses[0].error.text == f"[unavailable] {STUCK}; try again in a moment"
    assert request.sender.responses[0].error.kind == "unavailable"


@pytest.mark.parametrize("restarted", [False, True])
def test_reports_are_held_against_what_the_engine_process_was_asked_to_check(
    model: TritonPythonModel, triton: Any, restarted: bool
) -> None:
    if restarted:
        lost = triton.Request("die")
        model.execute([lost])
        wait_for(lambda: lost.sender.final and model._watch.problem() is None)
    counts = {"running": 1, "waiting": 0, "pages_free": 0, "pages_used": 1, "pages_quarantined": 0, "tokens_in": 0}
    counts |= {"tokens_out": 0, "tag_mismatches": 0}
    model._take_status(Status(**counts, guard="tags", steps=1, tag_checks=1))  # as the stand-in says that it was asked to
    assert not model._watch.unguarded
    model._take_status(Status(**counts, guard="off", steps=2, tag_checks=2))
    assert model._watch.unguarded
    request = triton.Request("good")
    model.execute([request])
    error = request.sender.responses[0].error
    # Trying again would not help.
    assert (error.kind, error.text) == ("unavailable", f"[unavailable] {UNGUARDED}")


def test_a_client_that_goes_away_is_cancelled(model: TritonPythonModel, triton: Any) -> None:
    request = triton.Request("hang")
    model.execute([request])
    assert not request.sender.final
    request.sender.gone = True
    wait_for(lambda: request.sender.final)
    assert request.sender.responses[-1].error.kind == "cancelled"


def test_a_request_that_cannot_be_watched_hides_no_other(model: TritonPythonModel, triton: Any) -> None:
    broken, leaving = triton.Request("hang"), triton.Request("hang")
    broken.sender.broken = True
    model.execute([broken, leaving])
    leaving.sender.gone = True
    wait_for(lambda: leaving.sender.final)
    assert leaving.sender.responses[-1].error.kind == "cancelled"


def test_an_engine_that_cannot_start_fails_the_load_with_its_reason(triton: Any, tmp_path: Path) -> None:
    with pytest.raises(triton.TritonModelException, match="the engine folder is broken"):
        TritonPythonModel().initialize(arguments(tmp_path, "broken"))


def test_the_backend_needs_no_torch() -> None:
    import subprocess

    script = "import sys, roundhouse.serve.triton.backend; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
