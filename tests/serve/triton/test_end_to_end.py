"""A tiny engine behind a real Triton server, through every door."""

from __future__ import annotations

import asyncio
import json
import math
import os
import queue
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import openai
import pytest
import tritonclient.grpc as grpcclient
from watching import descendants, engine_process, held_still, metric, no_room_for_files, shared_memory, wait_for

from roundhouse.build.engine import Engine, write_manifest
from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.errors import ServeError, UsageError
from roundhouse.serve.deployment import Deployment, Endpoints, Ports
from roundhouse.serve.page_map import PageMap, PageRun
from roundhouse.serve.settings import Overrides
from roundhouse.serve.triton.locate import find_triton
from roundhouse.serve.triton.ports import bind_port

PROMPT = "The roundhouse stood"
FREE_PORTS = Ports(http=0, grpc=0, metrics=0, openai=0)
LONG = 480
STREAMS = 32
BURST = 200
TOLD_WITHIN_S = 10.0
"""A killed engine is noticed at once; this machine may be busy."""


@pytest.fixture(scope="module")
def at(tiny_engine: Engine, session_home: Home) -> Iterator[Endpoints]:
    """Where one deployment answers, shared by the tests of this file."""
    with Deployment([tiny_engine], session_home, ports=FREE_PORTS, overrides=Overrides(max_seq_len=512)) as deployment:
        yield deployment.endpoints


@pytest.fixture(scope="module")
def client(at: Endpoints) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=at.openai, api_key="none", max_retries=0) as client:
        yield client


def tensor(name: str, value: Any, dtype: Any, kind: str) -> grpcclient.InferInput:
    found = grpcclient.InferInput(name, [1], kind)
    found.set_data_from_numpy(np.array([value], dtype=dtype))
    return found


def inputs(prompt: str, max_tokens: int, *, streaming: bool = True, temperature: float = 0.0) -> list[grpcclient.InferInput]:
    return [
        tensor("text_input", prompt.encode(), np.object_, "BYTES"),
        tensor("streaming", streaming, np.bool_, "BOOL"),
        tensor("sampling_param_max_tokens", max_tokens, np.int32, "INT32"),
        tensor("sampling_param_temperature", temperature, np.float32, "FP32"),
        tensor("sampling_param_ignore_eos", True, np.bool_, "BOOL"),
    ]


class Stream:
    """One request on a gRPC stream of its own."""

    def __init__(self, at: Endpoints, asked: list[grpcclient.InferInput]) -> None:
        self.answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
        self.client = grpcclient.InferenceServerClient(at.grpc)
        self.client.start_stream(callback=lambda result, error: self.answers.put((result, error)))
        self.client.async_stream_infer(at.model, asked, request_id="the same for all")

    def next(self) -> dict[str, Any]:
        result, error = self.answers.get(timeout=60)
        if error is not None:
            raise error
        names = ("text_output", "finish_reason", "completion_tokens", "prompt_tokens", "index")
        return {name: values[0] for name in names if (values := result.as_numpy(name)) is not None}

    def rest(self) -> list[dict[str, Any]]:
        pieces = [self.next()]
        while "finish_reason" not in pieces[-1]:
            pieces.append(self.next())
        return pieces


@contextmanager
def stream(at: Endpoints, asked: list[grpcclient.InferInput]) -> Iterator[Stream]:
    found = Stream(at, asked)
    try:
        yield found
    finally:
        found.client.close()


def report(at: Endpoints) -> None:
    """Wait until the metrics show what has happened so far: the engine reports about once a second."""
    called = math.ceil(time.time())
    wait_for(lambda: metric(at.metrics, "roundhouse_status_time_seconds") >= called, "the engine reports")


def require_idle(at: Endpoints) -> None:
    report(at)
    wait_for(lambda: metric(at.metrics, "roundhouse_kv_pages_used") == 0, "every page comes back")
    assert metric(at.metrics, "roundhouse_requests_running") == 0


@contextmanager
def interrupted(at: Endpoints) -> Iterator[None]:
    """What happens inside must end a request of LONG tokens early and give its pages back."""
    report(at)
    before = metric(at.metrics, "roundhouse_generated_tokens_total")
    yield
    require_idle(at)
    assert 0 < metric(at.metrics, "roundhouse_generated_tokens_total") - before < LONG


def test_grpc_streams_what_one_shot_answers(at: Endpoints) -> None:
    with stream(at, inputs(PROMPT, 24)) as streamed, stream(at, inputs(PROMPT, 24, streaming=False)) as whole:
        pieces, (answer,) = streamed.rest(), whole.rest()
    assert len(pieces) > 5
    assert b"".join(piece["text_output"] for piece in pieces) == answer["text_output"]
    assert answer["finish_reason"] == pieces[-1]["finish_reason"] == b"length"
    assert answer["completion_tokens"] == pieces[-1]["completion_tokens"] == 24
    assert answer["prompt_tokens"] > 0


def test_cancelling_a_grpc_stream_gives_its_pages_back(at: Endpoints) -> None:
    with interrupted(at), stream(at, inputs(PROMPT, LONG)) as running:
        running.next()
        running.client.stop_stream(cancel_requests=True)


def test_eight_streams_at_once(at: Endpoints) -> None:
    checks = metric(at.metrics, "roundhouse_tag_checks_total")
    running = [Stream(at, inputs(f"{PROMPT} {number}", 32 + number)) for number in range(8)]
    ends = [one.rest()[-1] for one in running]
    for one in running:
        one.client.close()
    assert [end["completion_tokens"] for end in ends] == [32 + number for number in range(8)]
    require_idle(at)
    assert metric(at.metrics, "roundhouse_tag_checks_total") > checks
    assert metric(at.metrics, "roundhouse_tag_mismatches_total") == 0


def test_a_bad_request_fails_alone_and_says_why(at: Endpoints) -> None:
    with stream(at, inputs(PROMPT, 64)) as good, stream(at, inputs("word " * 600, 8)) as bad:
        with pytest.raises(Exception, match=r"^\[invalid_request\] the prompt has [\d,]+ tokens"):
            bad.next()
        assert good.rest()[-1]["completion_tokens"] == 64


def test_http_generate_takes_tensors_or_parameters(at: Endpoints) -> None:
    url = f"{at.http}/v2/models/{at.model}/generate"
    asked = {"text_input": PROMPT, "sampling_param_max_tokens": 6, "sampling_param_ignore_eos": True}
    tensors = httpx.post(url, json=asked, trust_env=False).json()
    parameters = httpx.post(
        url, json={"text_input": PROMPT, "parameters": {"max_tokens": 6, "ignore_eos": True}}, trust_env=False
    ).json()
    assert tensors["completion_tokens"] == 6
    assert tensors == parameters
    refused = httpx.post(url, json={"text_input": PROMPT, "max_tokns": 6}, trust_env=False)
    assert refused.status_code == 400
    assert "did you mean 'max_tokens'" in refused.json()["error"]


def test_http_generate_stream(at: Endpoints) -> None:
    url = f"{at.http}/v2/models/{at.model}/generate_stream"
    asked = {"text_input": PROMPT, "max_tokens": 8, "ignore_eos": True, "streaming": True}
    with httpx.stream("POST", url, json=asked, trust_env=False) as response:
        pieces = [json.loads(line.removeprefix("data: ")) for line in response.iter_lines() if line]
    assert [piece.get("finish_reason") for piece in pieces] == [None] * (len(pieces) - 1) + ["length"]
    assert pieces[-1]["completion_tokens"] == 8


def test_leaving_generate_stream_gives_the_pages_back(at: Endpoints) -> None:
    url = f"{at.http}/v2/models/{at.model}/generate_stream"
    asked = {"text_input": PROMPT, "max_tokens": LONG, "ignore_eos": True, "streaming": True}
    with interrupted(at), httpx.stream("POST", url, json=asked, trust_env=False) as response:
        next(response.iter_lines())


def test_edges_of_parameters_on_tritons_route(at: Endpoints) -> None:
    url = f"{at.http}/v2/models/{at.model}/generate"

    def ask(**fields: Any) -> httpx.Response:
        return httpx.post(url, json={"text_input": PROMPT, **fields}, trust_env=False)

    none = ask(max_tokens=0).json()
    assert (none["text_output"], none["completion_tokens"], none["finish_reason"]) == ("", 0, "length")
    for refused in ({"max_tokens": -1}, {"stop_words": [""]}, {"top_p": 2}, {"ignore_eos": 1}, {"bad_words": ["x"]}):
        response = ask(**refused)
        assert response.status_code == 400, refused
        assert "[invalid_request]" in response.json()["error"], refused
    for mistyped in ({"max_tokens": "5"}, {"max_tokens": None}, {"seed": -5}, {"seed": 2**64}, {"stop": "x"}):
        response = ask(**mistyped)  # Triton itself cannot make a tensor of it
        assert response.status_code in (400, 500), mistyped
        assert "Unable to parse" in response.json()["error"], mistyped
    assert ask(max_tokens=2).status_code == 200


def test_no_tokens_on_both_openai_routes(at: Endpoints, client: openai.OpenAI) -> None:
    text = client.completions.create(model=at.model, prompt=PROMPT, max_tokens=0)
    chat = client.chat.completions.create(model=at.model, messages=[{"role": "user", "content": "Hi"}], max_tokens=0)
    for whole in (text, chat):
        assert whole.choices[0].finish_reason == "length"
        assert whole.usage is not None
        assert whole.usage.completion_tokens == 0
    assert text.choices[0].text == chat.choices[0].message.content == ""


def test_it_is_ready(at: Endpoints) -> None:
    assert httpx.get(f"{at.openai.removesuffix('/v1')}/readyz", trust_env=False).json() == {"status": "ready", "chat": True}
    assert metric(at.metrics, "roundhouse_engine_up") == 1
    assert abs(time.time() - metric(at.metrics, "roundhouse_status_time_seconds")) < 30


def test_openai_lists_the_model(at: Endpoints, client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [at.model]


def test_openai_completion_and_its_stream_agree(at: Endpoints, client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": at.model, "prompt": PROMPT, "max_tokens": 12, "temperature": 0}
    whole = client.completions.create(**asked)
    chunks = list(client.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert whole.choices[0].text == "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
    assert whole.usage is not None
    assert whole.usage == chunks[-1].usage
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens


def test_openai_chat_and_its_stream_agree(at: Endpoints, client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {
        "model": at.model,
        "messages": [{"role": "user", "content": "Where is the engine?"}],
        "max_completion_tokens": 12,
        "temperature": 0,
    }
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True))
    assert whole.choices[0].message.content == "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert whole.choices[0].finish_reason == chunks[-1].choices[0].finish_reason


def test_openai_takes_token_ids_and_a_seed(at: Endpoints, client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": at.model, "prompt": [10, 20, 30], "max_tokens": 12, "temperature": 1.0, "seed": 7}
    first, second = client.completions.create(**asked), client.completions.create(**asked)
    assert first.usage is not None
    assert first.usage.prompt_tokens == 3
    assert first.choices[0].text == second.choices[0].text


def test_openai_stop_strings_end_the_text_before_them(at: Endpoints, client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": at.model, "prompt": PROMPT, "max_tokens": 12, "temperature": 0}
    text = client.completions.create(**asked).choices[0].text
    cut = client.completions.create(**asked, stop=[text[4:8]]).choices[0]
    assert cut.text == text[: text.index(text[4:8])]
    assert cut.finish_reason == "stop"


def test_openai_errors_are_the_clients_own_classes(at: Endpoints, client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="is not served here"):
        client.completions.create(model="other", prompt=PROMPT)
    with pytest.raises(openai.BadRequestError, match="the prompt has"):
        client.completions.create(model=at.model, prompt="word " * 600)
    for stream_asked in (False, True):
        with pytest.raises(openai.BadRequestError, match="the prompt is empty"):
            client.completions.create(model=at.model, prompt="", stream=stream_asked)


def test_leaving_an_openai_stream_gives_the_pages_back(at: Endpoints) -> None:
    asked = {"model": at.model, "prompt": PROMPT, "max_tokens": LONG, "ignore_eos": True, "stream": True}
    with interrupted(at), httpx.stream("POST", f"{at.openai}/completions", json=asked, trust_env=False) as response:
        next(response.iter_lines())


def test_giving_up_on_an_openai_answer_gives_the_pages_back(at: Endpoints) -> None:
    asked = {"model": at.model, "prompt": PROMPT, "max_tokens": LONG, "ignore_eos": True}
    with interrupted(at), pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{at.openai}/completions", json=asked, timeout=0.3, trust_env=False)


def test_a_page_names_who_holds_it_until_the_answer_ends(at: Endpoints) -> None:
    with httpx.Client(trust_env=False, timeout=60) as http:  # made before: that takes longer than a short answer

        def page_map() -> PageMap:
            return msgspec.json.decode(http.get(f"{at.openai}/pages").raise_for_status().content, type=PageMap)

        def held_by(client_id: str) -> list[tuple[PageRun, str]]:
            """The runs that a client's request holds, each with the engine's own id of it."""
            now = page_map()
            assert sum(run.pages for run in now.runs) == now.pages
            named = [(run, each) for run in now.runs if run.held_by >= 0 for each in now.held_by[run.held_by].requests]
            return [(run, each.request_id) for run, each in named if each.client_id == client_id]

        body = {"model": at.model, "prompt": PROMPT, "max_tokens": LONG, "ignore_eos": True, "stream": True, "n": 4}
        headers = {"x-request-id": "who-holds-this"}
        with http.stream("POST", f"{at.openai}/completions", json=body, headers=headers) as response:
            lines = response.iter_lines()  # kept: httpx hangs up when it is gone
            next(lines)
            held = held_by("who-holds-this")
        assert held
        assert all(run.state in ("used", "shared") and run.tag > 0 for run, _ in held)
        assert len({request_id for _, request_id in held}) == 1
        wait_for(lambda: not held_by("who-holds-this"), "its pages are given back")
        require_idle(at)
        idle = page_map()
        assert {run.state for run in idle.runs} <= {"free", "shared"}
        assert all(idle.held_by[run.held_by].requests == [] for run in idle.runs if run.state == "shared")
        told = http.post(f"{at.http}/v2/models/{at.model}/generate", json={"pages": True}).json()
        assert msgspec.json.decode(told["page_map"], type=PageMap) == idle


def test_a_burst_of_clients_half_of_whom_leave_at_any_moment_wedges_nothing(at: Endpoints) -> None:
    chosen = random.Random(0)
    leaving = set(chosen.sample(range(BURST), BURST // 2))

    async def ask(client: httpx.AsyncClient, number: int) -> None:
        count = chosen.randint(8, 40)
        body = {"model": at.model, "prompt": f"{PROMPT} {number}", "max_tokens": count, "ignore_eos": True}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        async with (
            asyncio.timeout(chosen.random() if number in leaving else None),  # in line, at its prompt, or in mid-answer
            client.stream("POST", f"{at.openai}/completions", json=body) as response,
        ):
            pieces = [line.removeprefix("data: ") async for line in response.aiter_lines() if line]
        assert json.loads(pieces[-2])["usage"]["completion_tokens"] == count

    async def ask_all() -> list[BaseException | None]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:
            return await asyncio.gather(*(ask(client, number) for number in range(BURST)), return_exceptions=True)

    ends = asyncio.run(ask_all())
    assert [end for number, end in enumerate(ends) if number not in leaving] == [None] * (BURST - len(leaving))
    left = [end for number, end in enumerate(ends) if number in leaving and end is not None]
    assert left
    assert {type(end) for end in left} == {TimeoutError}
    require_idle(at)
    assert httpx.get(f"{at.openai.removesuffix('/v1')}/readyz", trust_env=False).status_code == 200


def test_a_killed_engine_process_comes_back_and_all_its_clients_are_told(at: Endpoints, client: openai.OpenAI) -> None:
    killed = engine_process(os.getpid())
    assert killed is not None
    shared = len(shared_memory(os.getpid()))
    with held_still(killed):  # none is answered before all are there
        running = [Stream(at, inputs(f"{PROMPT} {number}", LONG)) for number in range(STREAMS)]
    try:
        running[0].next()
        killed.kill()
        began = time.monotonic()
        for one in running:
            with pytest.raises(Exception, match=r"^\[unavailable\] the engine process"):
                one.rest()
        assert time.monotonic() - began < TOLD_WITHIN_S
    finally:
        for one in running:
            one.client.close()
    assert httpx.get(f"{at.http}/v2/health/live", trust_env=False).status_code == 200
    readyz = f"{at.openai.removesuffix('/v1')}/readyz"
    refused = httpx.get(readyz, trust_env=False)  # the next start is a second away
    assert refused.status_code == 503
    assert refused.json()["reason"] == "the engine process is down"

    def answers() -> bool:
        try:
            return client.completions.create(model=at.model, prompt=PROMPT, max_tokens=2).usage is not None
        except openai.InternalServerError:  # 503 until it stands again
            return False

    wait_for(answers, "the engine process is started again")
    assert httpx.get(readyz, trust_env=False).status_code == 200
    assert len(shared_memory(os.getpid())) == shared
    require_idle(at)


def test_several_answers_and_what_was_cached_are_told(at: Endpoints) -> None:
    prompt = f"{PROMPT} where the line from the north meets the line from the south, and " * 3
    report(at)
    seen = metric(at.metrics, "roundhouse_cached_tokens_total"), metric(at.metrics, "roundhouse_ttft_seconds_count")
    twice = tensor("sampling_param_n", 2, np.int32, "INT32")
    with stream(at, [*inputs(prompt, 12), twice]) as streamed:
        said = {0: b"", 1: b""}
        ends = 0
        while ends < 2:
            piece = streamed.next()
            said[piece["index"]] += piece["text_output"]
            ends += "finish_reason" in piece
    with stream(at, [*inputs(prompt, 12, streaming=False), twice]) as whole:
        result, error = whole.answers.get(timeout=60)
    assert error is None
    assert result.as_numpy("text_output").tolist() == [said[0], said[1]]
    assert said[0] == said[1]  # greedy
    cached, prompt_tokens = result.as_numpy("cached_tokens"), result.as_numpy("prompt_tokens")
    assert 0 < cached.min() <= cached.max() < prompt_tokens[0]
    wait_for(lambda: metric(at.metrics, "roundhouse_cached_tokens_total") > seen[0], "prefix hits are counted")
    wait_for(lambda: metric(at.metrics, "roundhouse_ttft_seconds_count") >= seen[1] + 4, "first tokens are counted")


def test_two_engines_on_one_server(tiny_engine: Engine, session_home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "second"
    shutil.copytree(tiny_engine.folder, folder)
    write_manifest(folder, tiny_engine.manifest.model_copy(update={"name": "second"}))
    engines = [tiny_engine, Engine.open(folder)]
    with Deployment(engines, session_home, ports=FREE_PORTS, overrides=Overrides(max_seq_len=128), control=True) as both:
        at = both.endpoints
        assert at.models == (tiny_engine.manifest.name, "second")
        servers = [each.cmdline() for each in descendants(os.getpid()) if each.name() == "tritonserver"]
        assert all("--model-load-thread-count=1" in command for command in servers), (
            "stubs that start together can crash Triton"
        )
        assert servers
        readyz = f"{at.openai.removesuffix('/v1')}/readyz"

        def ask(model: str) -> httpx.Response:
            body = {"model": model, "prompt": PROMPT, "max_tokens": 4, "temperature": 0}
            return httpx.post(f"{at.openai}/completions", json=body, trust_env=False)

        first, second = (ask(model).json()["choices"][0]["text"] for model in at.models)
        assert first == second
        assert httpx.get(readyz, trust_env=False).status_code == 200
        both.control.unload("second")
        assert ask("second").status_code == 503
        assert ask(at.model).status_code == 200
        refused = httpx.get(readyz, trust_env=False)
        assert (refused.status_code, refused.json()["status"]) == (503, "not ready")
        assert refused.json()["reason"] == "second: the model second is not loaded in Triton"


def test_an_engine_that_is_served_is_not_removed(at: Endpoints, tiny_engine: Engine, session_home: Home) -> None:
    with pytest.raises(UsageError, match="is running"):
        EngineStore(session_home).remove(tiny_engine.folder)
    assert tiny_engine.folder.exists()


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (Overrides(max_seq_len=10**6), "max_seq_len 1000000 is above"),
        (Overrides(kv_cache_bytes=10**15), "exceed the .* free memory"),
    ],
)
def test_what_cannot_run_is_said_before_triton_starts(
    tiny_engine: Engine, session_home: Home, overrides: Overrides, words: str
) -> None:
    lines: list[str] = []
    with pytest.raises(UsageError, match=words):
        Deployment([tiny_engine], session_home, ports=FREE_PORTS, overrides=overrides, on_log=lines.append).start()
    assert lines == []


def test_a_temporary_folder_that_triton_cannot_start_from_is_named(
    tiny_engine: Engine, session_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "with space"
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    with pytest.raises(ServeError, match=r"Triton cannot start from .*with space"):
        Deployment([tiny_engine], session_home, ports=FREE_PORTS).start()


def test_a_truncated_engine_is_refused_at_load(tiny_engine: Engine, session_home: Home, tmp_path: Path) -> None:
    shutil.copytree(tiny_engine.folder, tmp_path / "engine")
    engine = Engine.open(tmp_path / "engine")
    victim = next(name for name in engine.manifest.files if name.endswith(".safetensors"))
    os.truncate(engine.folder / victim, 1000)
    before = shared_memory(os.getpid())
    words = f"engine {engine.manifest.id} is damaged: {Path(victim).name} has 1,000 bytes instead of"
    with pytest.raises(ServeError, match=words):
        Deployment([engine], session_home, ports=FREE_PORTS).start()
    assert shared_memory(os.getpid()) == before


def test_a_full_disk_is_named_before_triton_starts(tiny_engine: Engine, session_home: Home, tmp_path: Path) -> None:
    find_triton(session_home.cache)  # what is laid out once is there
    before = set(Path(tempfile.gettempdir()).glob("roundhouse_*"))
    with no_room_for_files():
        with pytest.raises(ServeError, match=r"the model repository cannot be written to .*: File too large"):
            Deployment([tiny_engine], session_home, ports=FREE_PORTS).start()
        with pytest.raises(ServeError, match=r"Triton's Python backend cannot be written to .*: File too large") as caught:
            find_triton(tmp_path / "cache")
    assert "ROUNDHOUSE_HOME" in (caught.value.hint or "")
    assert set(Path(tempfile.gettempdir()).glob("roundhouse_*")) == before
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_taken_port_is_named_before_anything_starts(tiny_engine: Engine, session_home: Home) -> None:
    with bind_port("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        for ports in (Ports(http=0, grpc=0, metrics=0, openai=port), Ports(http=port, grpc=0, metrics=0, openai=0)):
            with pytest.raises(ServeError, match=f"cannot listen on 127.0.0.1:{port}"):
                Deployment([tiny_engine], session_home, ports=ports).start()
