"""Closing the front while requests are answered."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fronts import Script, events

from roundhouse.serve.openai import server
from roundhouse.serve.openai.app import create_app
from roundhouse.serve.openai.chat import ChatTemplate
from roundhouse.serve.openai.served import ServedModel
from roundhouse.serve.openai.triton_client import GenerationOptions, Piece, TritonClient

PLAIN = {"model": "m", "prompt": "a"}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("/completions", PLAIN),
    ("/completions", PLAIN | {"prompt": ["a", "b"]}),
    ("/completions", PLAIN | {"stream": True}),
    ("/completions", PLAIN | {"prompt": ["a", "b"], "stream": True}),
    ("/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "a"}], "stream": True}),
]
ANSWERS = 7
"""Of all of them together."""


class Endless(Script):
    """Begins every answer and ends none. Counts those that are let go before it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for = threading.Semaphore(0)
        self.let_go_in_time = 0
        self._open = True

    async def close(self) -> None:
        self._open = False

    async def generate(
        self, prompt: str | list[int], options: GenerationOptions, *, streaming: bool
    ) -> AsyncGenerator[Piece, None]:
        try:
            if streaming:
                yield Piece(0, "a", None, None, 1, 0, 1, (1,), None)
            self.asked_for.release()
            await asyncio.sleep(600)
        finally:
            self.let_go_in_time += self._open


def test_live_requests_end_with_an_error_that_clients_understand(
    hermes: ChatTemplate, capfd: pytest.CaptureFixture[str]
) -> None:
    endless = Endless()
    front = server.FrontServer(create_app({"m": ServedModel(hermes, lambda: endless)}), host="127.0.0.1", port=0)
    front.start()

    def ask(path: str, body: Any) -> httpx.Response:
        return httpx.post(f"http://127.0.0.1:{front.port}/v1{path}", json=body, timeout=30, trust_env=False)

    with ThreadPoolExecutor(len(REQUESTS)) as pool:
        asked = [pool.submit(ask, path, body) for path, body in REQUESTS]
        for _ in range(ANSWERS):
            assert endless.asked_for.acquire(timeout=30)
        front.stop(grace_s=0)
        responses = [each.result() for each in asked]
    for (_, body), response in zip(REQUESTS, responses, strict=True):
        streamed = bool(body.get("stream"))
        assert response.status_code == (200 if streamed else 503)
        error = (events(response)[-1] if streamed else response.json())["error"]
        assert (error["code"], error["type"]) == ("unavailable", "server_error")
        assert response.headers["x-request-id"]
    assert endless.let_go_in_time == ANSWERS
    assert capfd.readouterr().err == ""


def test_a_request_whose_body_never_comes_ends_too(hermes: ChatTemplate, capfd: pytest.CaptureFixture[str]) -> None:
    front = server.FrontServer(create_app({"m": ServedModel(hermes, Script)}), host="127.0.0.1", port=0)
    front.start()
    with socket.create_connection(("127.0.0.1", front.port), timeout=30) as client:
        head = "POST /v1/completions HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 9\r\n"
        client.sendall(f"{head}expect: 100-continue\r\n\r\n".encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 100 ")  # it is being read
        front.stop(grace_s=0)
        assert client.recv(1000).startswith(b"HTTP/1.1 503 ")
    assert capfd.readouterr().err == ""


def test_a_request_that_ends_within_the_grace_is_answered(hermes: ChatTemplate) -> None:
    asked, go_on = threading.Event(), threading.Event()

    class Held(Script):
        async def generate(
            self, prompt: str | list[int], options: GenerationOptions, *, streaming: bool
        ) -> AsyncGenerator[Piece, None]:
            asked.set()
            await asyncio.get_running_loop().run_in_executor(None, go_on.wait)
            yield Piece(0, "whole", "stop", None, 1, 0, 1, (1,), None)

    held = Held()
    front = server.FrontServer(create_app({"m": ServedModel(hermes, lambda: held)}), host="127.0.0.1", port=0)
    front.start()
    with ThreadPoolExecutor(2) as pool:
        url = f"http://127.0.0.1:{front.port}/v1/completions"
        answer = pool.submit(httpx.post, url, json=PLAIN, timeout=30, trust_env=False)
        assert asked.wait(timeout=30)
        stopped = pool.submit(front.stop)
        go_on.set()
        assert answer.result().json()["choices"][0]["text"] == "whole"
        stopped.result()


def test_a_client_that_is_closed_asks_nothing_more() -> None:
    """A request that is left only then is cut off, and nothing is said of it on a closed channel."""
    faults: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        client = TritonClient("127.0.0.1:1", "m", "http://127.0.0.1:1/metrics")
        pieces = client.generate("a", GenerationOptions(), streaming=True)
        reading = asyncio.ensure_future(anext(pieces))
        await asyncio.sleep(0)
        await client.close()
        reading.cancel()
        await asyncio.wait({reading})
        await asyncio.sleep(0.01)

    asyncio.run(run())
    assert faults == []
