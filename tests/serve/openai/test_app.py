"""What holds for every route: errors, limits, models, health, ids, and letting go of clients that leave."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fronts import Script, events, serving, template_of

from roundhouse.serve.openai.chat import ChatTemplate, load_chat_template
from roundhouse.serve.openai.errors import ApiError, api_error_from_triton
from roundhouse.serve.openai.messages import ChatMessage
from roundhouse.serve.openai.triton_client import GenerationOptions, Piece


def named(schema: object) -> tuple[Any, int, str]:
    """A change to a request, with what becomes of it."""
    return {"response_format": {"type": "json_schema", "json_schema": schema}}, 400, "invalid_request"


COMPLETION = {"model": "m", "prompt": "hi"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ROUTES = [("/completions", COMPLETION), ("/chat/completions", CHAT)]


@pytest.mark.parametrize(("path", "body"), ROUTES)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("failure", "status", "kind", "code"),
    [
        ("[unavailable] the engine process is down", 503, "server_error", "unavailable"),
        ("[overloaded] 64 requests wait already", 429, "rate_limit_error", "rate_limit_exceeded"),
        ("[deadline] it had not ended after 3 s", 408, "timeout_error", "timeout"),
        ("[page_tag_mismatch] page 3 was reassigned", 500, "server_error", "page_tag_mismatch"),
        ("[page_content_mismatch] page 3 was changed", 500, "server_error", "page_content_mismatch"),
        ("[strange", 500, "server_error", "internal"),
    ],
)
def test_a_request_that_fails_at_once_has_a_status(
    http: httpx.Client, script: Script, path: str, body: Any, stream: bool, failure: str, status: int, kind: str, code: str
) -> None:
    script.answers = [failure]
    response = http.post(path, json=body | {"stream": stream})
    assert response.status_code == status
    message = failure.partition("] ")[2] or failure
    assert response.json() == {"error": {"message": message, "type": kind, "param": None, "code": code}}
    assert response.headers.get("retry-after") == ("1" if status == 429 else None)
    assert script.closed == 1


@pytest.mark.parametrize(("path", "body"), ROUTES)
def test_a_stream_that_breaks_says_so_and_does_not_end_as_done(
    http: httpx.Client, script: Script, path: str, body: Any
) -> None:
    script.answers = ["so far so [unavailable] the engine process ended"]
    found = events(http.post(path, json=body | {"stream": True}))
    assert len(found) > 2
    assert found[-1]["error"]["code"] == "unavailable"
    assert "[DONE]" not in found


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("[invalid_request] min_tokens is 7; it must be at most max_tokens", "min_tokens"),
        ("[invalid_request] the prompt has 600 tokens; this engine takes at most 511", "prompt"),
        ("[invalid_request] logit_bias: token id 99 does not exist; it must be in 0..9", "logit_bias"),
        ("[invalid_request] stop_token_ids: token id 99 does not exist; it must be in 0..9", "stop_token_ids"),
        ("[invalid_request] stop has 99 strings; at most 64 are allowed", "stop"),
        ("[invalid_request] token id 99 is not in 0..9", "prompt"),
        ("[invalid_request] the JSON schema cannot be followed: it is empty", "guide"),
        ("[invalid_request] the regular expression cannot be followed: it is empty", "guide"),
        ("[invalid_request] a request has no id", None),
        ("[unavailable] seed of trouble", None),
    ],
)
def test_the_engines_errors_name_the_field(message: str, param: str | None) -> None:
    assert api_error_from_triton(message).param == param


@pytest.mark.parametrize(
    ("changes", "status", "code", "param"),
    [
        ({"model": "other"}, 404, "model_not_found", "model"),
        ({"max_tokens": -1}, 400, "invalid_request", "max_tokens"),
        ({"max_tokens": "5"}, 400, "invalid_request", "max_tokens"),
        ({"stop": ""}, 400, "invalid_request", "stop"),
        ({"stop": [""]}, 400, "invalid_request", "stop[0]"),
        ({"n": 0}, 400, "invalid_request", "n"),
        ({"top_k": -1}, 400, "invalid_request", "top_k"),
        ({"logit_bias": {"x": 1}}, 400, "invalid_request", "logit_bias"),
        ({"temprature": 1}, 400, "invalid_request", "temprature"),
        ({"deadline_s": 0}, 400, "invalid_request", "deadline_s"),
        ({"response_format": {"type": "xml"}}, 400, "invalid_request", "response_format"),
        ({"response_format": 5}, 400, "invalid_request", "response_format"),
        ({"response_format": {"type": "json_schema"}}, 400, "invalid_request", "response_format.json_schema"),
        (*named({}), "response_format.json_schema.name"),
        (*named({"name": "n"}), "response_format.json_schema.schema"),
        (*named({"name": "n", "schema": 5}), "response_format.json_schema.schema"),
        (*named({"name": "n", "schema": {}, "stict": True}), "response_format.json_schema.stict"),
        ({"stop_token_ids": [1, "a"]}, 400, "invalid_request", "stop_token_ids[1]"),
        ({"stream_options": {"include_usge": True}}, 400, "invalid_request", "stream_options.include_usge"),
    ],
)
@pytest.mark.parametrize(("path", "body"), ROUTES)
def test_a_wrong_field_is_named(
    http: httpx.Client, script: Script, path: str, body: Any, changes: Any, status: int, code: str, param: str
) -> None:
    response = http.post(path, json=body | changes)
    assert response.status_code == status
    error = response.json()["error"]
    assert (error["code"], error["param"], error["type"]) == (code, param, "invalid_request_error")
    assert param in error["message"]
    assert script.asked == []


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("/completions", "prompt", "\\ud800"),
        ("/completions", "prompt", ["a", "\\ud800"]),
        ("/completions", "stop", ["\\udfff"]),
        ("/completions", "cache_salt", "\\ud800"),
        ("/completions", "\\ud800", 1),
        ("/completions", "model", "\\ud800"),
        ("/chat/completions", "messages", [{"role": "user", "content": "\\ud800"}]),
        ("/chat/completions", "messages", [{"role": "\\ud800", "content": "a"}]),
        ("/chat/completions", "tools", [{"type": "function", "function": {"name": "f", "description": "\\ud800"}}]),
    ],
)
def test_half_a_character_is_the_callers_error(http: httpx.Client, script: Script, path: str, field: str, value: Any) -> None:
    body = json.dumps((COMPLETION if path == "/completions" else CHAT) | {field: value}).replace("\\\\u", "\\u")
    response = http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 404)
    assert response.json()["error"]["message"]
    assert script.asked == []


@pytest.mark.parametrize("content", [b"{bad", b'{"model": "\xff"}', b"", b"[" * 200_000])
def test_a_body_that_is_not_json_is_a_400(http: httpx.Client, content: bytes) -> None:
    response = http.post("/completions", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_request"
    assert response.json()["error"]["message"] == ("the body is not valid JSON" if content else "this field is missing")


@pytest.mark.parametrize(
    ("path", "changes", "message"),
    [
        ("/completions", {"stop": ""}, "stop: an empty stop string is not allowed"),
        ("/completions", {"stop": ["a", ""]}, "stop[1]: an empty stop string is not allowed"),
        ("/completions", {"stop": 5}, "stop: it must be a string or a list of strings"),
        ("/completions", {"prompt": 5}, "prompt: it must be a text, a list of token ids, or a list of several of one of them"),
        ("/completions", {"prompt": [-1]}, "prompt[0]: Input should be greater than or equal to 0"),
        ("/completions", {"prompt": ["a", 5]}, "prompt[1]: Input should be a valid string"),
        ("/completions", {"prompt": [[1], [2, "a"]]}, "prompt[1][1]: Input should be a valid integer"),
        ("/completions", {"temprature": 1}, "not supported here: temprature (did you mean 'temperature'?)"),
        ("/completions", {"suffix": "a"}, "not supported here: suffix"),
        ("/completions", {"xyz": "a"}, "not supported here: xyz"),
        ("/completions", {"stream_options": {"x": 1}}, "stream_options.x: this field is not known"),
        ("/chat/completions", {"tool_choice": 5}, "tool_choice: Input should be 'none', 'auto' or 'required'"),
        ("/chat/completions", {"tool_choice": {"type": "function"}}, "tool_choice.function: this field is missing"),
        (
            "/chat/completions",
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": 5}}]},
            "tools[0].function.parameters: it must be a JSON object",
        ),
        ("/chat/completions", {"tools": [{"type": "function", "function": {"name": "f"}}] * 2}, "two tools are called 'f'"),
    ],
)
def test_it_is_said_what_is_wrong(http: httpx.Client, path: str, changes: Any, message: str) -> None:
    response = http.post(path, json=dict(ROUTES)[path] | changes)
    assert response.status_code == 400
    assert response.json()["error"]["message"] == message


SCHEMA, TOOL = {"name": "n", "schema": {}}, {"type": "function", "function": {"name": "f"}}
OTHER_TOOL = {"type": "function", "function": {"name": "g"}}
BAD_GUIDE = "[invalid_request] the JSON schema cannot be followed: it is bad"


@pytest.mark.parametrize(
    ("path", "fields", "failure", "param"),
    [
        ("/completions", {"guided_regex": "["}, "[invalid_request] the regular expression cannot be followed", "guided_regex"),
        ("/completions", named(SCHEMA)[0], BAD_GUIDE, "response_format"),
        ("/completions", {"prompt": [99]}, "[invalid_request] token id 99 is not in 0..9", "prompt"),
        ("/chat/completions", {}, "[invalid_request] the prompt has 600 tokens", "messages"),
        ("/chat/completions", named(SCHEMA)[0], BAD_GUIDE, "response_format"),
        ("/chat/completions", {"tools": [TOOL], "tool_choice": "required"}, BAD_GUIDE, "tools[0].function.parameters"),
        ("/chat/completions", {"tools": [TOOL, OTHER_TOOL], "tool_choice": "required"}, BAD_GUIDE, "tools"),
        ("/chat/completions", {"tools": [TOOL]} | named(SCHEMA)[0], BAD_GUIDE, "tools"),
        ("/chat/completions", {"tools": [TOOL], "tool_choice": "none"} | named(SCHEMA)[0], BAD_GUIDE, "response_format"),
    ],
)
def test_what_only_the_engine_sees_names_the_requests_own_field(
    http: httpx.Client, script: Script, path: str, fields: Any, failure: str, param: str
) -> None:
    script.answers = [failure]
    error = http.post(path, json=dict(ROUTES)[path] | fields).json()["error"]
    assert (error["param"], error["message"]) == (param, failure.removeprefix("[invalid_request] "))


@pytest.mark.parametrize(("path", "body"), ROUTES)
def test_a_schema_nested_without_end_is_a_400(http: httpx.Client, path: str, body: Any) -> None:
    deep = '{"a":' * 500 + "1" + "}" * 500
    schema = f'{{"type": "json_schema", "json_schema": {{"name": "n", "schema": {deep}}}}}'
    content = json.dumps(body)[:-1] + f', "response_format": {schema}}}'
    response = http.post(path, content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert "nested more than 100 levels deep" in response.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/completions", "/chat/completions"])
@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/x-www-form-urlencoded"}])
def test_json_that_is_not_called_json_says_which_header_to_send(http: httpx.Client, path: str, headers: dict[str, str]) -> None:
    response = http.post(path, content=json.dumps(COMPLETION), headers=headers)
    assert response.status_code == 400
    error = response.json()["error"]
    assert "content-type: application/json" in error["message"]
    assert error["code"] == "invalid_request"


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
    base_url: str, method: str, path: str, status: int, code: str
) -> None:
    response = httpx.request(method, base_url.removesuffix("/v1") + path, trust_env=False)
    assert response.status_code == status
    error = response.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, code)
    assert f"{method} {path}" in error["message"]
    assert response.headers["x-request-id"]


@pytest.mark.parametrize("known_length", [True, False])
def test_a_body_above_the_limit_is_refused_before_it_is_parsed(http: httpx.Client, script: Script, known_length: bool) -> None:
    body = json.dumps({**COMPLETION, "prompt": "x" * (16 * 2**20)}).encode()
    content: Any = body if known_length else iter([body[: len(body) // 2], body[len(body) // 2 :]])
    response = http.post("/completions", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "request_too_large"
    assert script.asked == []


def test_a_large_body_below_the_limit_is_taken(http: httpx.Client, script: Script) -> None:
    script.answers = ["ok"]
    prompt = "x" * (15 * 2**20)
    assert http.post("/completions", json={**COMPLETION, "prompt": prompt}).status_code == 200
    assert script.asked[0].prompt == prompt


def test_a_fault_of_the_front_is_an_error_in_openais_form(hermes: ChatTemplate, capfd: pytest.CaptureFixture[str]) -> None:
    with serving({"m": (hermes, Script([]))}) as url:  # asked more often than the script says
        response = httpx.post(f"{url}/completions", json=COMPLETION, headers={"x-request-id": "mine"}, trust_env=False)
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal"
    assert response.headers["x-request-id"] == "mine"
    assert "IndexError: pop from empty list" in capfd.readouterr().err


def test_chat_without_a_template_says_what_works(tiny_model: Any, script: Script) -> None:
    script.answers = ["ok"]
    without = load_chat_template(tiny_model("llama"), chat=False)
    with serving({"m": (without, script)}) as url, httpx.Client(base_url=url, trust_env=False) as http:
        for fields in ({}, {"tools": [{"type": "function", "function": {"name": "f"}}]}):
            response = http.post("/chat/completions", json=CHAT | fields)
            assert response.status_code == 400
            assert "/v1/completions works" in response.json()["error"]["message"]
            assert response.json()["error"]["code"] == "chat_not_supported"
        assert http.get(url.removesuffix("/v1") + "/readyz").json() == {"status": "ready", "chat": False}
        assert http.post("/completions", json=COMPLETION).json()["choices"][0]["text"] == "ok"


def test_models_and_health(base_url: str, http: httpx.Client, script: Script) -> None:
    root = base_url.removesuffix("/v1")
    (model,) = http.get("/models").json()["data"]
    assert (model["id"], model["object"], model["chat"], model["tools"]) == ("m", "model", True, "hermes")
    assert http.get("/models/m").json() == model
    assert http.get("/models/x").status_code == 404
    assert http.get(f"{root}/healthz").status_code == 200
    assert http.get(f"{root}/readyz").json() == {"status": "ready", "chat": True}
    script.trouble = "the engine process is down"
    response = http.get(f"{root}/readyz")
    assert response.status_code == 503
    assert response.json() == {"status": "not ready", "chat": True, "reason": "the engine process is down"}


def test_several_models_are_asked_by_name(tiny_model: Any, hermes: ChatTemplate) -> None:
    first, second = Script(["one"]), Script(["two"], trouble="it is down")
    plain = template_of(tiny_model("llama"))
    with serving({"a": (hermes, first), "b/c": (plain, second)}) as url, httpx.Client(base_url=url, trust_env=False) as http:
        assert [model["id"] for model in http.get("/models").json()["data"]] == ["a", "b/c"]
        assert http.get("/models/b/c").json()["tools"] is None
        assert http.post("/completions", json={**COMPLETION, "model": "b/c"}).json()["choices"][0]["text"] == "two"
        assert http.post("/chat/completions", json={**CHAT, "model": "a"}).json()["model"] == "a"
        error = http.post("/completions", json=COMPLETION).json()["error"]
        assert error["message"] == "the model 'm' is not served here; 'a', 'b/c' are"
        assert http.get(url.removesuffix("/v1") + "/readyz").json()["reason"] == "b/c: it is down"
    assert len(first.asked) == len(second.asked) == 1


def test_a_request_keeps_the_id_and_the_session_that_it_came_with(http: httpx.Client, script: Script) -> None:
    script.answers = ["ok", "ok", "ok"]
    headers = {"x-request-id": "req-7", "x-session-affinity": "user-3"}
    whole = http.post("/completions", json=COMPLETION, headers=headers)
    assert (whole.headers["x-request-id"], whole.headers["x-session-affinity"]) == ("req-7", "user-3")
    assert whole.json()["id"] == "cmpl-req-7"
    assert script.asked[0].options.request_id == "req-7"
    streamed = http.post("/chat/completions", json=CHAT | {"stream": True}, headers=headers)
    assert streamed.headers["x-request-id"] == "req-7"
    assert {event["id"] for event in events(streamed)[:-1]} == {"chatcmpl-req-7"}
    refused = http.post("/completions", json={}, headers=headers)
    assert (refused.headers["x-request-id"], refused.status_code) == ("req-7", 400)


@pytest.mark.parametrize("given", ["", "x" * 129, "with space", "caf\xe9"])
def test_an_id_that_is_none_is_replaced(http: httpx.Client, script: Script, given: str) -> None:
    script.answers = ["ok"]
    headers = {"x-request-id": given.encode("latin-1"), "x-session-affinity": given.encode("latin-1")}
    response = http.post("/completions", json=COMPLETION, headers=headers)
    made = response.headers["x-request-id"]
    assert made not in ("", given)
    assert script.asked[0].options.request_id == made
    assert response.json()["id"] == f"cmpl-{made}"
    assert "x-session-affinity" not in response.headers


class Slow(Script):
    """Answers once, and then never, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    async def generate(
        self, prompt: str | list[int], options: GenerationOptions, *, streaming: bool
    ) -> AsyncGenerator[Piece, None]:
        try:
            if streaming:
                yield Piece(0, "a", None, None, 1, 0, 1, (1,), None)
            await asyncio.sleep(600)
        finally:
            self.closed += 1
            self.let_go.set()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompts", [1, 3])
def test_a_client_that_leaves_ends_its_requests(hermes: ChatTemplate, stream: bool, prompts: int) -> None:
    slow = Slow()
    body = {"model": "m", "prompt": ["a"] * prompts, "stream": stream}
    with serving({"m": (hermes, slow)}) as url:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/completions", json=body, timeout=0.5, trust_env=False)
        assert slow.let_go.wait(timeout=30)
    assert slow.closed == prompts


class HeldTemplate(ChatTemplate):
    """Takes until it is let go."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        self.begun, self.let_go = threading.Event(), threading.Event()

    def prompt_ids(self, messages: Sequence[ChatMessage], tools: Any = (), opening: str = "") -> list[int]:
        self.begun.set()
        assert self.let_go.wait(timeout=30)
        return [1]


def test_others_are_answered_while_a_long_chat_is_rendered(tiny_model: Any) -> None:
    from transformers import AutoTokenizer

    template = HeldTemplate(AutoTokenizer.from_pretrained(tiny_model("llama")))
    with serving({"m": (template, Script(["ok"]))}) as url, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(httpx.post, f"{url}/chat/completions", json=CHAT, trust_env=False, timeout=30)
        try:
            assert template.begun.wait(timeout=30)
            assert httpx.get(f"{url}/models", trust_env=False).status_code == 200
            assert not answer.done()
        finally:
            template.let_go.set()
        assert answer.result().status_code == 200


def test_an_unknown_error_of_triton_is_internal() -> None:
    error = api_error_from_triton("something broke")
    assert isinstance(error, ApiError)
    assert (error.status, error.code, error.message) == (500, "internal", "something broke")
