"""What is said when there is no answer, or one of something else."""

from __future__ import annotations

import socket
import threading

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from served_app import RemoteCommand, ServedApp

from roundhouse.console.remote.client import Client
from roundhouse.console.remote.failures import UnreachableError
from roundhouse.errors import PlanRefusedError, RoundhouseError, SetupError, UsageError


def test_nobody_listens(run_main: RemoteCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("ROUNDHOUSE_TOKEN", "rh_x")
    answer = run_main("--server", f"http://127.0.0.1:{port}", "jobs", "list")
    assert answer.code == 1
    assert "nothing listens there" in answer.err
    assert "roundhouse console" in answer.err
    assert "Traceback" not in answer.err


def test_a_server_without_tls_is_named(run_main: RemoteCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    served = ServedApp(FastAPI())
    monkeypatch.setenv("ROUNDHOUSE_TOKEN", "rh_x")
    answer = run_main("--server", served.url.replace("http:", "https:"), "jobs", "list")
    served.stop()
    assert answer.code == 1
    assert "does not speak TLS" in answer.err


def problem(status: int, kind: str, detail: str, hint: str | None = None) -> JSONResponse:
    body = {"type": kind, "detail": detail, "hint": hint, "reasons": ["a"]}
    return JSONResponse(body, status, media_type="application/problem+json")


@pytest.mark.parametrize(
    ("response", "kind", "said"),
    [
        (HTMLResponse("<h1>Bad gateway</h1>", 502), RoundhouseError, "502 Bad Gateway: this is no answer of a console"),
        (RedirectResponse("https://login.example/"), UsageError, "https://login.example/"),
        (JSONResponse({"items": 3}), RoundhouseError, "is not what Roundhouse"),
        (PlainTextResponse("by another name", 421), RoundhouseError, "by another name"),
        (
            problem(422, "urn:roundhouse:problem:plan-refused", "too large", "Take less."),
            PlanRefusedError,
            "too large\nTake less.",
        ),
        (problem(418, "about:blank", "odd"), UsageError, "odd"),
        (problem(503, "urn:roundhouse:problem:setup", "no key"), SetupError, "no key"),
        (problem(500, "urn:roundhouse:problem:of-a-newer-version", "broken"), RoundhouseError, "broken"),
    ],
)
def test_every_other_answer_becomes_an_error_with_words(response: Response, kind: type[RoundhouseError], said: str) -> None:
    app = FastAPI()
    app.add_api_route("/api/v1/things", lambda: response, response_model=None)
    served = ServedApp(app)
    try:
        with Client(served.url, "rh_x") as client, pytest.raises(RoundhouseError) as failed:
            client.get("/things", list[int])
    finally:
        served.stop()
    assert type(failed.value) is kind
    assert said in str(failed.value)


def test_reading_is_tried_again_and_what_must_not_be_done_twice_is_not() -> None:
    asked: list[str] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def hang_up() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            asked.append(connection.recv(65536).split(b" ")[0].decode())
            connection.close()

    thread = threading.Thread(target=hang_up, daemon=True)
    thread.start()
    with Client(f"http://127.0.0.1:{listening.getsockname()[1]}", "rh_x") as client:
        with pytest.raises(UnreachableError):
            client.get("/things", list[int])
        with pytest.raises(UnreachableError):
            client.post("/things", list[int], repeatable=False)
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(timeout=30)
    assert asked == ["GET", "GET", "GET", "POST"]
