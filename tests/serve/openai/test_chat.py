"""`/v1/chat/completions`: the template, tool calls whole and streamed, log-probabilities, errors."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fronts import HERMES_TEMPLATE, Script, events, serving, template_of

from roundhouse.serve.openai.chat import ChatTemplate, load_chat_template
from roundhouse.serve.openai.errors import ApiError
from roundhouse.serve.openai.messages import ChatMessage
from roundhouse.serve.openai.tools import form_named
from roundhouse.serve.openai.tools.definitions import Tool

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": CITY}}]
CALLS = (
    'Let me see.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
)


def ask(http: httpx.Client, *, stream: bool, **fields: Any) -> dict[str, Any]:
    """The one choice of an answer, put together from its deltas when it is streamed."""
    response = http.post("/chat/completions", json=CHAT | fields | {"stream": stream})
    assert response.status_code == 200, response.text
    if not stream:
        (choice,) = response.json()["choices"]
        return dict(choice)
    return assembled(events(response)[:-1])


def assembled(chunks: list[Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"content": "", "tool_calls": []}
    finish_reason = None
    logprobs: list[Any] = []
    for chunk in chunks:
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        message["role"] = delta.get("role", message.get("role"))
        message["content"] += delta.get("content") or ""
        for call in delta.get("tool_calls", []):
            if call["index"] == len(message["tool_calls"]):
                message["tool_calls"].append({key: call[key] for key in ("id", "type", "function")})
            else:
                assert set(call) == {"index", "function"}
                message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        logprobs += (choice["logprobs"] or {}).get("content", [])
        assert finish_reason is None
        finish_reason = choice["finish_reason"]
    return {"message": message, "finish_reason": finish_reason, "logprobs": logprobs}


def called(choice: dict[str, Any]) -> list[tuple[str, str]]:
    calls = choice["message"].get("tool_calls") or []
    assert all(call["type"] == "function" and call["id"].startswith("call_") for call in calls)
    assert len({call["id"] for call in calls}) == len(calls)
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]


def test_a_whole_answer(http: httpx.Client, script: Script, tokenizer: Any) -> None:
    script.answers = ["hello"]
    body = http.post("/chat/completions", json=CHAT).json()
    assert body["object"] == "chat.completion"
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hello", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert script.asked[0].prompt == tokenizer.encode("<|user|>hi\n<|assistant|>", add_special_tokens=False)


def test_a_stream_opens_with_the_role_and_closes_with_the_reason(http: httpx.Client, script: Script) -> None:
    script.answers = ["hello"]
    found = events(http.post("/chat/completions", json=CHAT | {"stream": True}))
    choices = [event["choices"][0] for event in found[:-1]]
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant", "content": ""},
        {"content": "hel"},
        {"content": "lo"},
        {},
    ]
    assert [choice["finish_reason"] for choice in choices] == [None, None, None, "stop"]
    assert found[-1] == "[DONE]"


@pytest.mark.parametrize("stream", [False, True])
def test_several_answers(http: httpx.Client, script: Script, stream: bool) -> None:
    script.answers = ["hello"]
    response = http.post("/chat/completions", json=CHAT | {"n": 3, "stream": stream})
    if stream:
        chunks = events(response)[:-1]
        for index in range(3):
            own = [chunk for chunk in chunks if chunk["choices"][0]["index"] == index]
            assert assembled(own)["message"] == {"role": "assistant", "content": "hello", "tool_calls": []}
    else:
        assert [(choice["index"], choice["message"]["content"]) for choice in response.json()["choices"]] == [
            (0, "hello"),
            (1, "hello"),
            (2, "hello"),
        ]


@pytest.mark.parametrize("stream", [False, True])
def test_calls_are_read_out_of_the_answer(http: httpx.Client, script: Script, stream: bool) -> None:
    script.answers = [CALLS]
    choice = ask(http, stream=stream, tools=TOOLS)
    assert choice["message"]["content"] == "Let me see."
    assert called(choice) == [("weather", '{"city": "Oslo"}'), ("weather", '{"city": "Rome"}')]
    assert choice["finish_reason"] == "tool_calls"


def test_a_streamed_call_comes_as_id_and_name_and_then_fragments(http: httpx.Client, script: Script) -> None:
    script.answers = [CALLS.partition("\n<tool_call>")[1] + CALLS.partition("\n<tool_call>")[2]]
    found = events(http.post("/chat/completions", json=CHAT | {"tools": TOOLS, "stream": True}))
    calls = [call for event in found[:-1] for call in event["choices"][0]["delta"].get("tool_calls", [])]
    first = [call for call in calls if call["index"] == 0]
    assert set(first[0]) == {"index", "id", "type", "function"}
    assert first[0]["function"] == {"name": "weather", "arguments": ""}
    assert len(first) > 3
    assert all(set(call) == {"index", "function"} and set(call["function"]) == {"arguments"} for call in first[1:])


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_of_calls_only_has_no_content(http: httpx.Client, script: Script, stream: bool) -> None:
    script.answers = [CALLS.removeprefix("Let me see.\n")]
    choice = ask(http, stream=stream, tools=TOOLS)
    assert choice["message"]["content"] == ("" if stream else None)
    assert len(called(choice)) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_without_parallel_calls_only_the_first_is_shown(http: httpx.Client, script: Script, stream: bool) -> None:
    script.answers = [CALLS]
    choice = ask(http, stream=stream, tools=TOOLS, parallel_tool_calls=False)
    assert called(choice) == [("weather", '{"city": "Oslo"}')]


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_is_cut_off_ends_as_length(http: httpx.Client, script: Script, stream: bool) -> None:
    script.answers, script.finish_reason = [CALLS[: CALLS.index("lo")]], "length"
    choice = ask(http, stream=stream, tools=TOOLS)
    assert called(choice) == [("weather", '{"city": "Os')]
    assert choice["finish_reason"] == "length"


@pytest.mark.parametrize("tool_choice", ["none", None])
def test_markup_is_text_when_nothing_can_be_called(http: httpx.Client, script: Script, tool_choice: str | None) -> None:
    script.answers = [CALLS]
    fields = {"tool_choice": tool_choice, "tools": TOOLS} if tool_choice else {}
    choice = ask(http, stream=False, **fields)
    assert choice["message"]["content"] == CALLS
    assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_call_that_must_be_made(http: httpx.Client, script: Script, tokenizer: Any, stream: bool, choice: Any) -> None:
    script.answers = ['{"name": "weather", "arguments": {"city": "Oslo"}}']
    answer = ask(http, stream=stream, tools=TOOLS, tool_choice=choice)
    assert called(answer) == [("weather", '{"city": "Oslo"}')]
    assert answer["finish_reason"] == "tool_calls"
    asked = script.asked[0]
    assert tokenizer.decode(asked.prompt).endswith("<|assistant|><tool_call>\n")
    assert asked.options.sampling.guide is not None
    assert asked.options.sampling.guide.kind == "json_schema"


def test_the_template_gets_tools_calls_and_results(http: httpx.Client, script: Script, tokenizer: Any) -> None:
    script.answers = ["It rains."]
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Rain?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "yes"},
    ]
    ask(http, stream=False, messages=messages, tools=TOOLS)
    assert tokenizer.decode(script.asked[0].prompt) == (
        f"<|tools|>{json.dumps(TOOLS[0])}\n<|system|>Be brief.\n<|user|>Rain?\n"
        '<|assistant|>\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n'
        "<|tool|>yes\n<|assistant|>"
    )


def test_a_part_that_is_not_text_is_named(http: httpx.Client) -> None:
    parts = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": "x"}}]
    response = http.post(
        "/chat/completions", json=CHAT | {"messages": [CHAT["messages"][0], {"role": "user", "content": parts}]}
    )
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == "messages[1].content"
    assert error["message"] == "messages[1].content: content part 1 is of type 'image_url'; only text is understood here"


def test_a_prompt_that_the_engine_refuses_is_about_the_messages(http: httpx.Client, script: Script) -> None:
    for stream in (False, True):
        script.answers = ["[invalid_request] the prompt has 600 tokens; this engine takes at most 511"]
        response = http.post("/chat/completions", json=CHAT | {"stream": stream})
        assert (response.status_code, response.json()["error"]["param"]) == (400, "messages")


def test_a_tool_that_is_wrong_is_named(http: httpx.Client) -> None:
    response = http.post(
        "/chat/completions", json=CHAT | {"tools": [*TOOLS, {"type": "function", "function": {"name": "a b"}}]}
    )
    assert response.json()["error"]["param"] == "tools[1].function.name"


def test_tools_need_a_template_that_shows_them(tiny_model: Any) -> None:
    with serving({"m": (template_of(tiny_model("llama")), Script())}) as url:
        response = httpx.post(f"{url}/chat/completions", json=CHAT | {"tools": TOOLS}, trust_env=False)
    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert message == "this model's chat template has no place for tools; ask another model, or set tool_choice to none"
    assert response.json()["error"]["param"] == "tools"


@pytest.mark.parametrize("stream", [False, True])
def test_markers_that_are_special_tokens_are_read_from_the_tokens(tiny_model: Any, stream: bool) -> None:
    special = template_of(tiny_model("llama"), HERMES_TEMPLATE, special=["<tool_call>", "</tool_call>"])
    script = Script([CALLS, CALLS], tokenizer=special._tokenizer, hides_special=True)
    with serving({"m": (special, script)}) as url, httpx.Client(base_url=url, trust_env=False) as http:
        choice = ask(http, stream=stream, tools=TOOLS)
        assert choice["message"]["content"] == "Let me see."
        assert called(choice) == [("weather", '{"city": "Oslo"}'), ("weather", '{"city": "Rome"}')]
        plain = ask(http, stream=stream)
        assert "<tool_call>" not in plain["message"]["content"]
        assert '{"name": "weather"' in plain["message"]["content"]


def test_a_form_can_be_given_instead_of_found(tiny_model: Any) -> None:
    text = '{"name": "weather", "parameters": {"city": "Oslo"}}'
    llama = template_of(tiny_model("llama"), HERMES_TEMPLATE, form=form_named("llama3"))
    with serving({"m": (llama, Script([text]))}) as url, httpx.Client(base_url=url, trust_env=False) as http:
        assert called(ask(http, stream=False, tools=TOOLS)) == [("weather", '{"city": "Oslo"}')]
    assert load_chat_template(tiny_model("llama"), chat=True, form=form_named("glm")).form == form_named("glm")


@pytest.mark.parametrize("stream", [False, True])
def test_log_probabilities(hermes: ChatTemplate, tokenizer: Any, stream: bool) -> None:
    script = Script(["a é"], tokenizer=tokenizer)
    with serving({"m": (hermes, script)}) as url, httpx.Client(base_url=url, trust_env=False) as http:
        choice = ask(http, stream=stream, logprobs=True, top_logprobs=2)
    found = choice["logprobs"] if stream else choice["logprobs"]["content"]
    assert [entry["token"] for entry in found] == ["a", " ", "�", "�"]
    assert [entry["bytes"] for entry in found] == [[97], [32], [0xC3], [0xA9]]
    assert all(entry["logprob"] == -0.5 and len(entry["top_logprobs"]) == 2 for entry in found)
    assert script.asked[0].options.sampling.logprobs == 2


@pytest.mark.parametrize("stream", [False, True])
def test_every_tokens_log_probability_is_there_with_calls_too(hermes: ChatTemplate, tokenizer: Any, stream: bool) -> None:
    script = Script([CALLS], tokenizer=tokenizer)
    with serving({"m": (hermes, script)}) as url, httpx.Client(base_url=url, trust_env=False) as http:
        choice = ask(http, stream=stream, logprobs=True, tools=TOOLS)
    found = choice["logprobs"] if stream else choice["logprobs"]["content"]
    assert b"".join(bytes(entry["bytes"]) for entry in found).decode() == CALLS


@pytest.mark.parametrize(
    "template", ["{{ raise_exception('roles must alternate') }}", "{{ messages[0].content + 1 }}", "{{ 1 // 0 }}"]
)
def test_a_template_that_fails_is_the_callers_error(tiny_model: Any, template: str) -> None:
    with pytest.raises(ApiError, match="the chat template refuses these messages") as caught:
        template_of(tiny_model("llama"), template).prompt_ids([ChatMessage(role="user", content="hi")])
    assert (caught.value.status, caught.value.param) == (400, "messages")


def test_one_tokenizer_serves_many_chats_at_once(hermes: ChatTemplate) -> None:
    messages = [ChatMessage(role="user", content="Where is the engine? " * 500)]
    tools = [Tool.model_validate(TOOLS[0])]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: hermes.prompt_ids(messages, tools), range(32)))
    assert all(ids == found[0] for ids in found)
