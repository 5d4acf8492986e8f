"""The application against a client that needs no Triton."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from roundhouse.serve.engine.request import SamplingParams
from roundhouse.serve.openai.app import create_app
from roundhouse.serve.openai.chat import ChatTemplate, load_chat_template
from roundhouse.serve.openai.errors import ApiError, api_error_from_triton
from roundhouse.serve.openai.schemas import ChatMessage
from roundhouse.serve.openai.server import FrontServer
from roundhouse.serve.openai.triton_client import Piece

HELLO = {"model": "m", "prompt": "say: hello there", "max_tokens": 8}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


class Echo:
    """Answers a prompt with its own words; ``fail`` and ``break`` do what they say."""

    trouble: str | None = None
    asked: list[str | list[int]]

    def __init__(self) -> None:
        self.asked = []
        self.sampling = SamplingParams()

    async def problem(self) -> str | None:
        return self.trouble

    async def close(self) -> None:
        pass

    async def generate(
        self, prompt: str | list[int], sampling: SamplingParams, *, streaming: bool
    ) -> AsyncGenerator[Piece, None]:
        self.asked.append(prompt)
        self.sampling = sampling
        words = prompt.split() if isinstance(prompt, str) else [f"t{token}" for token in prompt]
        if words[0] == "fail":
            raise api_error_from_triton("[unavailable] the engine process is down")
        if not streaming:
            yield Piece(" ".join(words), "stop", len(words), len(words))
            return
        for count, word in enumerate(words, start=1):
            if word == "break":
                raise api_error_from_triton("[page_tag_mismatch] page 3 was reassigned")
            yield Piece(word, "stop" if count == len(words) else None, len(words), count)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def client(echo: Echo) -> Iterator[httpx.Client]:
    """A client of the application, served for real on a free port; chat is not supported."""
    server = FrontServer(create_app("m", ChatTemplate(None), lambda: echo), host="127.0.0.1", port=0)
    server.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as client:
        yield client
    server.stop()


def events(response: httpx.Response) -> list[Any]:
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [text if text == "[DONE]" else json.loads(text) for text in data]


def test_a_whole_answer(client: httpx.Client) -> None:
    body = client.post("/v1/completions", json=HELLO).json()
    assert body["object"] == "text_completion"
    assert body["choices"] == [{"index": 0, "finish_reason": "stop", "logprobs": None, "text": "say: hello there"}]
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}


def test_a_stream_ends_with_usage_when_asked(client: httpx.Client) -> None:
    asked = {**HELLO, "stream": True, "stream_options": {"include_usage": True}}
    found = events(client.post("/v1/completions", json=asked))
    assert [event["choices"][0]["text"] for event in found[:3]] == ["say:", "hello", "there"]
    assert [event["choices"][0]["finish_reason"] for event in found[:3]] == [None, None, "stop"]
    assert (found[3]["choices"], found[3]["usage"]["total_tokens"]) == ([], 6)
    assert found[4] == "[DONE]"
    assert len({event["id"] for event in found[:4]}) == 1


def test_a_stream_has_no_usage_unless_asked(client: httpx.Client) -> None:
    found = events(client.post("/v1/completions", json={**HELLO, "stream": True}))
    assert len(found) == 4
    assert all("usage" not in event for event in found[:3])


def test_a_request_that_fails_at_once_has_a_status(client: httpx.Client) -> None:
    for stream in (False, True):
        response = client.post("/v1/completions", json={"model": "m", "prompt": "fail", "stream": stream})
        assert response.status_code == 503
        assert response.json() == {
            "error": {"message": "the engine process is down", "type": "server_error", "param": None, "code": "unavailable"}
        }


def test_a_stream_that_breaks_says_so_and_does_not_end_as_done(client: httpx.Client) -> None:
    found = events(client.post("/v1/completions", json={"model": "m", "prompt": "a break b", "stream": True}))
    assert found[-1]["error"]["code"] == "page_tag_mismatch"
    assert "[DONE]" not in found


@pytest.mark.parametrize(
    ("changes", "status", "code", "param"),
    [
        ({"model": "other"}, 404, "model_not_found", "model"),
        ({"max_tokens": -1}, 400, "invalid_request", "max_tokens"),
        ({"prompt": ["a", "b"]}, 400, "invalid_request", "prompt"),
        ({"n": 2}, 400, "invalid_request", None),
    ],
)
def test_errors_have_openais_form(client: httpx.Client, changes: dict[str, Any], status: int, code: str, param: Any) -> None:
    response = client.post("/v1/completions", json={**HELLO, **changes})
    assert response.status_code == status
    error = response.json()["error"]
    assert (error["code"], error["param"], error["type"]) == (code, param, "invalid_request_error")


def test_a_body_that_is_not_json_is_a_400(client: httpx.Client) -> None:
    response = client.post("/v1/completions", content="{bad", headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "the body is not valid JSON"


def test_chat_without_a_template_says_what_works(client: httpx.Client) -> None:
    response = client.post("/v1/chat/completions", json=CHAT)
    assert response.status_code == 400
    assert "/v1/completions works" in response.json()["error"]["message"]
    assert client.get("/readyz").json() == {"status": "ready", "chat": False}


def test_models_and_health(client: httpx.Client, echo: Echo) -> None:
    assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["m"]
    assert client.get("/v1/models/m").json()["id"] == "m"
    assert client.get("/v1/models/x").status_code == 404
    assert client.get("/healthz").status_code == 200
    echo.trouble = "the engine process is down"
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {"status": "not ready", "chat": False, "reason": "the engine process is down"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "unknown_url"),
        ("POST", "/completions", 404, "unknown_url"),
        ("GET", "/v1/completions", 405, "method_not_allowed"),
        ("POST", "/v1/models", 405, "method_not_allowed"),
    ],
)
def test_routes_that_are_not_there_are_errors_in_openais_form(
    client: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    response = client.request(method, path)
    assert response.status_code == status
    error = response.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, code)
    assert f"{method} {path}" in error["message"]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/x-www-form-urlencoded"}])
def test_json_that_is_not_called_json_says_which_header_to_send(
    client: httpx.Client, path: str, headers: dict[str, str]
) -> None:
    response = client.post(path, content=json.dumps(HELLO), headers=headers)
    assert response.status_code == 400
    error = response.json()["error"]
    assert "content-type: application/json" in error["message"]
    assert error["code"] == "invalid_request"


@pytest.mark.parametrize("known_length", [True, False])
def test_a_body_above_the_limit_is_refused_before_it_is_parsed(client: httpx.Client, echo: Echo, known_length: bool) -> None:
    body = json.dumps({**HELLO, "prompt": "x" * (16 * 2**20)}).encode()
    content: Any = body if known_length else iter([body[: len(body) // 2], body[len(body) // 2 :]])
    response = client.post("/v1/completions", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "request_too_large"
    assert echo.asked == []


def test_a_large_body_below_the_limit_is_taken(client: httpx.Client, echo: Echo) -> None:
    prompt = "x" * (15 * 2**20)
    assert client.post("/v1/completions", json={**HELLO, "prompt": prompt}).status_code == 200
    assert echo.asked == [prompt]


class HeldTemplate(ChatTemplate):
    """Takes until it is let go."""

    def __init__(self) -> None:
        super().__init__(None)
        self.begun, self.let_go = threading.Event(), threading.Event()

    def prompt_ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        self.begun.set()
        assert self.let_go.wait(timeout=30)
        return [1]


def test_others_are_answered_while_a_long_chat_is_rendered(echo: Echo) -> None:
    template = HeldTemplate()
    server = FrontServer(create_app("m", template, lambda: echo), host="127.0.0.1", port=0)
    server.start()
    base = f"http://127.0.0.1:{server.port}"
    try:
        with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=base, trust_env=False, timeout=30) as client:
            answer = pool.submit(client.post, "/v1/chat/completions", json=CHAT)
            assert template.begun.wait(timeout=30)
            assert client.get("/healthz").status_code == 200
            assert not answer.done()
            template.let_go.set()
            assert answer.result().status_code == 200
    finally:
        template.let_go.set()
        server.stop()


def test_one_tokenizer_serves_many_chats_at_once(tiny_model: Any) -> None:
    template = load_chat_template(tiny_model("llama"), chat=True)
    messages = [ChatMessage(role="user", content="Where is the engine? " * 500)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: template.prompt_ids(messages), range(32)))
    assert all(ids == found[0] for ids in found)


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("max_tokens", 0, 200),
        ("max_tokens", None, 200),
        ("max_tokens", "5", 400),
        ("max_tokens", -1, 400),
        ("stop", "", 400),
        ("stop", [""], 400),
        ("stop", None, 200),
    ],
)
def test_edges_of_max_tokens_and_stop(tiny_model: Any, echo: Echo, path: str, field: str, value: Any, status: int) -> None:
    template = load_chat_template(tiny_model("llama"), chat=True)
    server = FrontServer(create_app("m", template, lambda: echo), host="127.0.0.1", port=0)
    server.start()
    try:
        asked = (CHAT if "chat" in path else {"model": "m", "prompt": "hi"}) | {field: value}
        response = httpx.post(f"http://127.0.0.1:{server.port}{path}", json=asked, trust_env=False)
    finally:
        server.stop()
    assert response.status_code == status
    if status == 400:
        assert response.json()["error"]["param"] == field
    elif value == 0:
        assert echo.sampling.max_tokens == 0
    else:
        assert echo.sampling.max_tokens == (2**31 - 1 if "chat" in path else 16)


def test_chat_goes_through_the_tokenizers_template(tiny_model: Any, echo: Echo) -> None:
    from transformers import AutoTokenizer

    folder = tiny_model("llama")
    template = load_chat_template(folder, chat=True)
    server = FrontServer(create_app("m", template, lambda: echo), host="127.0.0.1", port=0)
    server.start()
    try:
        url = f"http://127.0.0.1:{server.port}/v1/chat/completions"
        body = httpx.post(url, json={**CHAT, "max_tokens": 4}, trust_env=False).json()
    finally:
        server.stop()
    expected = AutoTokenizer.from_pretrained(folder).encode("<|user|>hi\n<|assistant|>", add_special_tokens=False)
    assert echo.asked == [expected]
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"]["role"] == "assistant"


def test_an_unknown_error_of_triton_is_internal() -> None:
    error = api_error_from_triton("something broke")
    assert (error.status, error.code, error.message) == (500, "internal", "something broke")


def test_a_template_that_refuses_is_the_callers_error(tiny_model: Any) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_model("llama"))
    tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(ApiError, match="roles must alternate") as caught:
        ChatTemplate(tokenizer).prompt_ids([ChatMessage(role="user", content="hi")])
    assert caught.value.status == 400
