"""Request bodies: what is taken, what it means, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from roundhouse.serve.engine.request import Guide, SamplingParams
from roundhouse.serve.openai.fields import GenerationFields
from roundhouse.serve.openai.schemas import ChatMessage, ChatRequest, CompletionRequest

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def completion(**fields: Any) -> CompletionRequest:
    return CompletionRequest.model_validate({"model": "m", "prompt": "hi", **fields})


def chat(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({**CHAT, **fields})


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("hi", ["hi"]),
        (["hi"], ["hi"]),
        ([1, 2], [[1, 2]]),
        ([[1, 2]], [[1, 2]]),
        (["a", "b"], ["a", "b"]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        ([], [[]]),
        ("", [""]),
    ],
)
def test_prompts_in_each_of_their_forms(prompt: object, prompts: object) -> None:
    assert completion(prompt=prompt).prompts == prompts


@pytest.mark.parametrize("prompt", [[1, "a"], [-1], [1.5], None, {"text": "a"}, [["a"]]])
def test_other_prompts_are_refused(prompt: object) -> None:
    with pytest.raises(ValidationError):
        completion(prompt=prompt)


def test_defaults_are_openais() -> None:
    assert completion().sampling == SamplingParams(max_tokens=16, temperature=1.0)
    assert completion(max_tokens=None, temperature=None, stop=None, n=None).sampling == completion().sampling
    assert chat().sampling(None) == SamplingParams(max_tokens=2**31 - 1, temperature=1.0)


def test_the_newer_name_of_max_tokens_wins() -> None:
    assert chat(max_tokens=9, max_completion_tokens=5).sampling(None).max_tokens == 5
    assert chat(max_tokens=0).sampling(None).max_tokens == 0


def test_log_probabilities_of_a_chat() -> None:
    assert [chat(logprobs=on).sampling(None).logprobs for on in (None, False, True)] == [None, None, 0]
    assert chat(logprobs=True, top_logprobs=20).sampling(None).logprobs == 20


def test_a_format_becomes_what_the_text_is_held_to() -> None:
    schema = {"name": "n", "strict": True, "description": "d", "schema": {"type": "object"}}
    assert chat(response_format={"type": "json_schema", "json_schema": schema}).guide == Guide(
        kind="json_schema", text='{"type": "object"}'
    )
    assert chat(response_format={"type": "json_object"}).guide == Guide(kind="json_object")
    assert chat(response_format={"type": "text"}).guide is None
    assert chat(guided_regex="a+").guide == Guide(kind="regex", text="a+")


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": -1},
        {"max_tokens": 10**9 * 5},
        {"max_tokens": "5"},
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"top_p": 1.5},
        {"top_k": -1},
        {"seed": -1},
        {"stop": ""},
        {"stop": ["a", ""]},
        {"stream_options": {"include_usge": True}},
    ],
)
def test_impossible_values_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        completion(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"top_logprobs": 2},
        {"logprobs": True, "top_logprobs": 21},
        {"logprobs": 3},
        {"max_completion_tokens": -1},
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"tools": [{"type": "custom", "custom": {"name": "f"}}]},
        {"tools": [{"type": "function", "function": {"name": "no good"}}]},
        {"tools": [{"type": "function", "function": {"name": "f"}}] * 2},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": "none"}}]},
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "stict": True}}},
    ],
)
def test_impossible_values_of_a_chat_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        chat(**fields)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("functions", [{"name": "f"}]),
        ("function_call", {"name": "f"}),
        ("reasoning_effort", "low"),
        ("modalities", ["audio"]),
        ("audio", {"voice": "a"}),
        ("prediction", {"type": "content"}),
        ("temprature", 0.5),
        ("temprature", None),
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=f"not supported here: {name}"):
        chat(**{name: value})


def test_what_changes_nothing_is_accepted() -> None:
    chat(
        functions=[],
        function_call="auto",
        tools=[],
        tool_choice="auto",
        parallel_tool_calls=True,
        modalities=["text"],
        reasoning_effort=None,
        user="me",
        store=True,
        metadata={"a": "b"},
        stream_options={"include_usage": False, "include_obfuscation": False},
    )


def message(**fields: Any) -> ChatMessage:
    return ChatMessage.model_validate(fields)


def test_content_may_come_in_parts_of_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    for role in ("system", "user", "assistant"):
        assert message(role=role, content=parts, name="x").for_template() == {"role": role, "content": "ab", "name": "x"}


def test_a_developer_is_the_system_to_templates_that_know_none() -> None:
    asked = message(role="developer", content="Be brief.")
    assert asked.for_template()["role"] == "system"
    assert asked.for_template(developer=True)["role"] == "developer"


def test_calls_and_their_results_go_to_the_template() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}}
    made = message(role="assistant", content=None, tool_calls=[call], refusal=None, annotations=[], audio=None)
    function = {"name": "f", "arguments": {"a": [1]}}
    assert made.for_template() == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }
    result = message(role="tool", tool_call_id="call_1", content=[{"type": "text", "text": "42"}])
    assert result.for_template() == {"role": "tool", "content": "42", "tool_call_id": "call_1"}


@pytest.mark.parametrize("arguments", ["", "{bad", "[1]", "7", "[" * 100_000])
def test_arguments_that_are_no_object_stay_as_they_are(arguments: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    (shown,) = message(role="assistant", tool_calls=[call]).for_template()["tool_calls"]
    assert shown["function"]["arguments"] == arguments


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"role": "user"}, "a message of user needs content"),
        ({"role": "tool", "content": "42"}, "needs the tool_call_id"),
        ({"role": "function", "content": "42"}, "role"),
        ({"role": "user", "content": "a", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": ""}}]}, "belong"),
        ({"role": "user", "content": "a", "weight": 0}, "not supported in a message: weight"),
        ({"role": "assistant", "content": "a", "refusal": "No."}, "not supported in a message: refusal"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}, "part 1 is of type 'image_url'"),
        ({"role": "user", "content": [{"type": "text"}]}, "part 0 has no text"),
        ({"role": "user", "content": ["a"]}, "part 0 is of type None"),
        ({"role": "user", "content": {"type": "text"}}, "content"),
    ],
)
def test_messages_that_cannot_be_understood_are_refused(fields: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        message(**fields)


def test_no_messages_are_refused() -> None:
    with pytest.raises(ValidationError):
        chat(messages=[])


def test_the_additions_in_the_docs_are_those_that_there_are() -> None:
    text = (Path(__file__).parents[3] / "docs" / "endpoints.md").read_text()
    table = text.partition("<!-- additions -->")[2].partition("<!-- /additions -->")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    fields = list(GenerationFields.model_fields)
    assert documented == set(fields[fields.index("response_format") + 1 :])
