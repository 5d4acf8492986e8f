"""Model control of something that is no Triton server: it says so."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from roundhouse.errors import ServeError, UsageError
from roundhouse.serve.triton.control import ModelControl


class Other(http.server.BaseHTTPRequestHandler):
    """A server of another kind."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>hello")

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def other() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_answer_that_is_no_tritons_says_so(other: str) -> None:
    control = ModelControl(other)
    for ask in (control.states, lambda: control.parameters("m")):
        with pytest.raises(ServeError, match="is no Triton server"):
            ask()


@pytest.mark.parametrize("url", ["t:8000", "http://t:99999", "http://t:x", "http://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is no URL of a Triton server"):
        ModelControl(url)
