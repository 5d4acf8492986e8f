"""An OpenAI-compatible endpoint that answers as it is told: well, oddly, late, wrongly, or not at all."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

__all__ = ["Answer", "ScriptedEndpoint"]

Answer = Literal["whole", "clumps", "uncounted", "role only", "silent", "busy", "broken", "told", "cut", "late", "refused"]
"""How a request is answered: ``whole``: every token in a chunk of its own; ``clumps``: 4, 1 and 3 tokens in three chunks;
``uncounted``: no usage at the end; ``role only``: a stream whose only chunk has a role; ``silent``: not even that; ``busy``:
429; ``broken``: 500; ``told``: an error in the stream, after two tokens; ``cut``: the connection ends after two tokens;
``late``: nothing for a minute; ``refused``: 400 because of ``ignore_eos``, as OpenAI itself."""


class ScriptedEndpoint:
    """A server on a free port, answering requests by turns. A context manager.

    Args:
        answers: how, one after another, and from the beginning again.
        pause_s: before every token.
    """

    def __init__(self, answers: Sequence[Answer] = ("whole",), pause_s: float = 0.002) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.closing = threading.Event()
        self._turns = itertools.cycle(answers)
        self._lock = threading.Lock()
        self.pause_s = pause_s
        endpoint = self

        class Handler(_Handler):
            owner = endpoint

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ScriptedEndpoint:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def turn(self, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        with self._lock:
            self.bodies.append(body)
            self.headers.append(headers)
            return next(self._turns)


_STATUSES = {"busy": (429, "too many requests"), "broken": (500, "it broke"), "refused": (400, "unknown field ignore_eos")}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ScriptedEndpoint

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._whole(
            200 if self.path == "/v1/models" else 404, {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.owner.turn(body, dict(self.headers))
        if answer in _STATUSES:
            status, message = _STATUSES[answer]
            self._whole(status, {"error": {"message": message, "type": "invalid_request_error"}})
            return
        with contextlib.suppress(OSError):
            self._stream(answer, body)

    def _stream(self, answer: Answer, body: dict[str, Any]) -> None:
        if answer == "late":
            self.owner.closing.wait(60)
            return
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")  # said, or the client sends its next request into what is closing
        self.end_headers()
        chat = self.path.endswith("/chat/completions")
        asked = int(body.get("max_tokens") or body.get("max_completion_tokens") or 8)
        clumps = [4, 1, 3] if answer == "clumps" else [1] * asked
        if chat and answer != "silent":
            self._event(self._chunk({"role": "assistant", "content": ""}, chat))
        if answer not in ("role only", "silent"):
            for number, tokens in enumerate(clumps):
                if number == 2 and answer == "told":
                    self._event({"error": {"message": "an engine broke", "code": 500}})
                    break
                if number == 2 and answer == "cut":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                time.sleep(self.owner.pause_s)
                self._event(self._chunk({"content": " word" * tokens}, chat))
        if answer in ("whole", "clumps"):
            prompt = 7
            usage = {"prompt_tokens": prompt, "completion_tokens": sum(clumps), "total_tokens": prompt + sum(clumps)}
            self._event({**self._chunk(None, chat), "usage": usage})
        self._raw(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, delta: dict[str, str] | None, chat: bool) -> dict[str, Any]:
        kind = "chat.completion.chunk" if chat else "text_completion"
        if delta is None:
            choices: list[dict[str, Any]] = []
        elif chat:
            choices = [{"index": 0, "delta": delta, "finish_reason": None}]
        else:
            choices = [{"index": 0, "text": delta.get("content", ""), "finish_reason": None}]
        return {"id": "1", "object": kind, "created": 1, "model": "scripted", "choices": choices}

    def _event(self, content: dict[str, Any]) -> None:
        self._raw(f"data: {json.dumps(content)}\n\n".encode())

    def _raw(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _whole(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
