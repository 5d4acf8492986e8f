"""A real Triton server whose engine processes are stand-ins: what clients ask, and models that come and go."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import pytest
from fake_served import fake_server
from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException
from watching import descendants, wait_for

from roundhouse.build.home import Home
from roundhouse.errors import ServeError
from roundhouse.serve.engine.request import SamplingParams, TokenLogprob
from roundhouse.serve.openai.errors import ApiError
from roundhouse.serve.openai.triton_client import GenerationOptions, Piece, TritonClient
from roundhouse.serve.triton.control import CONTROL_HEADER, ModelControl
from roundhouse.serve.triton.encode import encode_inputs
from roundhouse.serve.triton.server import TritonServer

T = TypeVar("T")

CYCLES = 10
WARM = 2
"""Cycles after which Triton has allocated what it keeps."""
MOST_GROWTH = 4 * 2**20
"""Bytes of the server's own memory, over the cycles after the warm ones."""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, session_home: Home) -> Iterator[TritonServer]:
    with fake_server(tmp_path_factory.mktemp("server"), session_home.cache, ["a", "b", "broken"]) as server:
        yield server


@pytest.fixture
def server(started: TritonServer) -> TritonServer:
    """The server with both of its models, whatever a test before this one left of them."""
    states = started.control.states()
    for model in ("a", "b"):
        if states.get(model) != "READY":
            started.control.load(model)
    return started


def ask(server: TritonServer, model: str, **fields: object) -> httpx.Response:
    url = f"http://127.0.0.1:{server.ports.http}/v2/models/{model}/generate"
    return httpx.post(url, json={"text_input": "count", "max_tokens": 3, **fields}, trust_env=False)


def with_client(server: TritonServer, work: Callable[[TritonClient], Awaitable[T]], model: str = "a") -> T:
    """What ``work`` gives with a client of a model, in an event loop of its own."""

    async def run() -> T:
        metrics = f"http://127.0.0.1:{server.ports.metrics}/metrics"
        client = TritonClient(f"127.0.0.1:{server.ports.grpc}", model, metrics)
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run())


def pieces(server: TritonServer, prompt: str, *, streaming: bool, **options: Any) -> list[Piece]:
    async def collect(client: TritonClient) -> list[Piece]:
        return [piece async for piece in client.generate(prompt, GenerationOptions(**options), streaming=streaming)]

    return with_client(server, collect)


def triton_process() -> psutil.Process:
    return next(process for process in descendants(os.getpid()) if process.name() == "tritonserver")


def things(server: TritonServer) -> dict[str, int]:
    """What could be left behind by a model that is gone."""
    triton = triton_process()
    return {
        "processes": len(triton.children(recursive=True)),
        "shared memory": len(list(Path("/dev/shm").glob(f"{server._prefix}*"))),
        "socket folders": len(list((server._scratch or Path()).iterdir())),
        "threads": triton.num_threads(),
    }


def memory(process: psutil.Process) -> int:
    """Bytes that the process itself has allocated.

    Pages of files do not count: Triton's libraries are shared with every other Triton of the machine, and become this one's
    own when that ends.
    """
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon"))


def test_models_come_and_go_and_nothing_grows(server: TritonServer) -> None:
    triton, control = triton_process(), server.control
    both = things(server)
    control.unload("b")
    without = things(server)
    before, files = 0, triton.num_fds()
    for cycle in range(CYCLES):
        control.load("b")
        assert ask(server, "b").json()["text_output"] == "1 2 3 "
        if cycle % 5 == 0:
            with pytest.raises(ServeError, match="the engine folder is broken"):
                control.load("broken")
        assert things(server) == both
        control.unload("b")
        assert things(server) == without
        assert "unknown model" in ask(server, "b").text
        assert ask(server, "a").json()["text_output"] == "1 2 3 "
        if cycle == WARM:
            before, files = memory(triton), triton.num_fds()
    assert memory(triton) - before < MOST_GROWTH
    assert triton.num_fds() <= files + 2  # connections come and go
    control.load("b")
    assert control.states() == {"a": "READY", "b": "READY", "broken": "UNAVAILABLE"}


def test_nobody_loads_or_unloads_without_the_key(server: TritonServer) -> None:
    stranger = ModelControl(f"http://127.0.0.1:{server.ports.http}", {CONTROL_HEADER: "guessed"})
    for attempt in (lambda: stranger.load("a"), lambda: stranger.unload("a"), stranger.states):
        with pytest.raises(ServeError, match="restricted"):
            attempt()
    assert ask(server, "a").status_code == 200


def test_what_cannot_be_loaded_is_named_and_the_others_go_on(server: TritonServer) -> None:
    with pytest.raises(ServeError, match="the engine folder is broken"):
        server.control.load("broken")
    with pytest.raises(ServeError, match="missing"):
        server.control.load("missing")
    assert ask(server, "a").status_code == 200
    wait_for(lambda: len(list((server._scratch or Path()).iterdir())) == 2, "only the two engines' sockets are left")


def test_a_model_serves_what_it_has_before_it_goes_and_is_not_ready_from_then_on(server: TritonServer) -> None:
    def problem(model: str) -> str | None:
        return with_client(server, lambda client: client.problem(), model)

    asked = {"text_input": "count", "max_tokens": 3000, "streaming": True}
    url = f"http://127.0.0.1:{server.ports.http}/v2/models/b/generate_stream"
    with httpx.stream("POST", url, json=asked, trust_env=False, timeout=60) as response:
        lines = response.iter_lines()
        next(lines)
        server.control.unload("b")
        assert problem("b") == "the model b is not loaded in Triton"
        last = [line for line in lines if line][-1]
    assert '"finish_reason":"length"' in last
    assert (problem("a"), problem("b")) == (None, "the model b is not loaded in Triton")
    server.control.load("b")
    assert problem("b") is None


def test_a_stream_gives_pieces_and_one_shot_each_answer_whole(server: TritonServer) -> None:
    sampling = SamplingParams(max_tokens=20, n=2, logprobs=0)
    streamed = pieces(server, "count", streaming=True, sampling=sampling)
    whole = pieces(server, "count", streaming=False, sampling=sampling)
    text, tokens = "".join(f"{number} " for number in range(1, 21)), tuple(range(1, 21))
    assert [(piece.index, piece.text, piece.finish_reason) for piece in whole] == [(0, text, "length"), (1, text, "length")]
    for index in (0, 1):
        mine = [piece for piece in streamed if piece.index == index]
        assert "".join(piece.text for piece in mine) == text
        assert sum((piece.token_ids for piece in mine), ()) == whole[index].token_ids == tokens
        assert sum((piece.logprobs or () for piece in mine), ()) == whole[index].logprobs
        assert [piece.finish_reason for piece in mine] == [None] * (len(mine) - 1) + ["length"]
        assert {(piece.prompt_tokens, piece.cached_tokens) for piece in mine} == {(1, index)}
        assert mine[-1].completion_tokens == 20
    assert whole[0].logprobs is not None
    assert whole[0].logprobs[4] == TokenLogprob(5, -0.5, [])


def test_every_option_of_a_request_travels(server: TritonServer) -> None:
    options: dict[str, Any] = {"cache_salt": "é", "priority": 2, "deadline_s": 1.5, "request_id": "mine"}
    (piece,) = pieces(server, "show", streaming=False, sampling=SamplingParams(temperature=0.5, stop=("a", "b")), **options)
    for part in ('"temperature":0.5', '"stop":["a","b"]', '"cache_salt":"é"', '"priority":2', '"deadline_s":1.5'):
        assert part in piece.text
    assert piece.stop_reason is None
    assert piece.logprobs is None


class OpenStream:
    """One request on a gRPC stream of its own, as any client of Triton's may have it. Read to its end, it is not cancelled."""

    def __init__(self, client: InferenceServerClient, request_id: str, **values: Any) -> None:
        async def one() -> AsyncIterator[dict[str, Any]]:
            yield {"model_name": "a", "inputs": encode_inputs(values), "request_id": request_id}

        self._results = client.stream_infer(one())

    async def next(self) -> Any:
        """The next result; an error is raised."""
        result, error = await anext(self._results)
        if error is not None:
            raise error
        return result

    async def last(self) -> Any:
        """The last result or error, once the server has ended the stream."""
        return [result if error is None else error async for result, error in self._results][-1]


def test_stop_ends_every_request_with_that_id_and_no_other(server: TritonServer) -> None:
    async def run() -> None:
        async with InferenceServerClient(f"127.0.0.1:{server.ports.grpc}") as client:
            begin = {"text_input": "begin", "streaming": True}
            mine = [OpenStream(client, "mine", **begin), OpenStream(client, "mine", **begin)]
            theirs = OpenStream(client, "theirs", **begin)
            for stream in (*mine, theirs):
                assert (await stream.next()).as_numpy("text_output").tolist() == [b"begin"]
            answer = await OpenStream(client, "mine", stop=True).last()
            assert answer.as_numpy("finish_reason").tolist() == [b"cancelled"]
            refusal = await OpenStream(client, "", stop=True).last()
            assert "[invalid_request] stop needs a request id" in refusal.message()
            for stream in mine:
                assert "[cancelled]" in (await stream.last()).message()
            waiting = asyncio.ensure_future(theirs.last())
            assert not (await asyncio.wait({waiting}, timeout=0.2))[0]
            await OpenStream(client, "theirs", stop=True).last()
            assert "[cancelled]" in (await waiting).message()

    asyncio.run(run())
    url = f"http://127.0.0.1:{server.ports.http}/v2/models/a/generate"
    assert httpx.post(url, json={"id": "nobody", "stop": True}, trust_env=False).json()["finish_reason"] == "cancelled"


def test_a_client_that_leaves_ends_its_request_only(server: TritonServer) -> None:
    async def leave_and_stay(client: TritonClient) -> str:
        options = GenerationOptions(SamplingParams(max_tokens=20), request_id="the same")
        async with aclosing(client.generate("begin", options, streaming=True)) as left:
            await anext(left)
            stayed = client.generate("begin", options, streaming=True)
            await anext(stayed)
        await asyncio.wait(set(client._leaving), timeout=30)
        waiting = asyncio.ensure_future(anext(stayed))
        done, _ = await asyncio.wait({waiting}, timeout=0.2)
        waiting.cancel()
        await asyncio.wait({waiting})
        return "ended" if done else "stayed"

    assert with_client(server, leave_and_stay) == "stayed"
    server.control.unload("a")  # which waits for every request that Triton still knows
    server.control.load("a")


def test_the_session_of_a_request_is_a_header_of_its_call(server: TritonServer, monkeypatch: pytest.MonkeyPatch) -> None:
    headers: list[object] = []
    ask = InferenceServerClient.stream_infer

    def listen(self: Any, *given: Any, **named: Any) -> Any:
        headers.append(named["headers"])
        return ask(self, *given, **named)

    monkeypatch.setattr(InferenceServerClient, "stream_infer", listen)
    pieces(server, "x", streaming=False, session_affinity="user-3")
    pieces(server, "x", streaming=False)
    assert headers == [{"x-session-affinity": "user-3"}, None]


def test_a_model_that_is_not_loaded_is_unavailable(server: TritonServer) -> None:
    async def ask_and_look(client: TritonClient) -> tuple[ApiError, str | None]:
        with pytest.raises(ApiError) as caught:
            await anext(client.generate("count", GenerationOptions(), streaming=True))
        return caught.value, await client.problem()

    error, problem = with_client(server, ask_and_look, "broken")
    assert (error.status, error.code) == (503, "unavailable")
    assert problem == "the model broken is not loaded in Triton"
    assert with_client(server, lambda client: client.problem()) is None


def test_plain_infer_is_refused_by_triton_itself(server: TritonServer) -> None:
    body = {"inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [1], "data": ["count"]}]}
    response = httpx.post(f"http://127.0.0.1:{server.ports.http}/v2/models/a/infer", json=body, trust_env=False)
    assert response.status_code == 501
    assert "decoupled" in response.text

    async def ask_once() -> None:
        async with InferenceServerClient(f"127.0.0.1:{server.ports.grpc}") as client:
            await client.infer("a", encode_inputs({"text_input": "count"}))

    with pytest.raises(InferenceServerException, match="decoupled"):
        asyncio.run(ask_once())
