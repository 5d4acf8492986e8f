"""Health checks of containers, against servers that answer in every way."""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from roundhouse.serve import probe


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers with the status that the path names, and keeps silent on any other."""

    def do_GET(self) -> None:
        name = self.path.removeprefix("/").partition("?")[0]
        if name.isdigit():
            text = b'{"reason": "it warms up"}'
            self.send_response(int(name))
            self.send_header("location", "/200")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        elif name == "garbage":
            self.wfile.write(b"I am no HTTP server\r\n\r\n")
        else:
            self.server.silence.wait()  # type: ignore[attr-defined]

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as running:
        running.silence = threading.Event()  # type: ignore[attr-defined]
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.silence.set()  # type: ignore[attr-defined]
        running.shutdown()


@pytest.fixture
def deserted() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/readyz"


def test_ready_is_200_and_nothing_else(server: str) -> None:
    assert probe.problem(f"{server}/200?verbose=1") is None
    assert probe.problem(f"{server}/503") == f'{server}/503: 503 {{"reason": "it warms up"}}'
    assert "302" in str(probe.problem(f"{server}/302"))
    assert "garbage" in str(probe.problem(f"{server}/garbage"))


def test_who_does_not_answer_in_time_is_not_ready(server: str) -> None:
    assert "timed out" in str(probe.problem(f"{server}/silence", timeout_s=0.05))


def test_all_that_are_named_must_be_ready(server: str, deserted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe.main([f"{server}/200", f"{server}/200"]) == 0
    assert capsys.readouterr().err == ""
    assert probe.main([f"{server}/503", deserted, f"{server}/200"]) == 1
    said = capsys.readouterr().err
    assert said.splitlines() == [f'{server}/503: 503 {{"reason": "it warms up"}}', f"{deserted}: nobody listens"]


def test_of_the_usual_places_those_that_listen_must_be_ready(
    server: str, deserted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for usual, code in (
        ((f"{server}/200", deserted), 0),
        ((deserted, f"{server}/200"), 0),
        ((f"{server}/200", f"{server}/503"), 1),
        ((deserted, deserted), 1),
    ):
        monkeypatch.setattr(probe, "USUAL", usual)
        assert probe.main([]) == code
    assert capsys.readouterr().err.splitlines()[-1] == f"nobody listens: {deserted}, {deserted}"


def test_it_is_a_command_that_loads_nothing_of_ours(server: str) -> None:
    command = [sys.executable, "-P", "-X", "importtime", "-m", "roundhouse.serve.probe", f"{server}/200"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert {name for name in loaded if name.startswith("roundhouse")} == {"roundhouse", "roundhouse.serve"}
    assert not {"typer", "pydantic", "rich"} & loaded
