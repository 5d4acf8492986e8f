"""What a request's tools come to: its prompt, what holds its answer, and what reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tool_texts import joined

from roundhouse.serve.engine.request import Guide
from roundhouse.serve.openai.errors import ApiError
from roundhouse.serve.openai.schemas import ChatRequest
from roundhouse.serve.openai.tools import form_named
from roundhouse.serve.openai.tools.use import ToolUse, plan_tools

CITY = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/City"}},
    "required": ["city"],
    "$defs": {"City": {"type": "string"}},
}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
PING = {"type": "function", "function": {"name": "ping"}}
NUMBER = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}
AS_NUMBER = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": NUMBER}}
PING_CHOICE = {"type": "function", "function": {"name": "ping"}}


def plan(form: str | None, *, takes_tools: bool = True, **fields: Any) -> ToolUse:
    messages = [{"role": "user", "content": "hi"}]
    request = ChatRequest.model_validate({"model": "m", "messages": messages, "tools": [WEATHER, PING], **fields})
    return plan_tools(request, form_named(form) if form else None, template_takes_tools=takes_tools)


def allows(guide: Guide | None, text: str, tokenizer: Any) -> bool:
    """Whether the engine's library for guides lets this text through, and as a whole."""
    from llguidance import LLMatcher, grammar_from
    from llguidance.hf import from_tokenizer

    assert guide is not None
    matcher = LLMatcher(from_tokenizer(tokenizer), grammar_from("json_schema", guide.text))
    assert not matcher.is_error(), matcher.get_error()
    return bool(matcher.consume_tokens(tokenizer.encode(text, add_special_tokens=False)) and matcher.is_accepting())


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Any) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model("llama"))


def answer(use: ToolUse, text: str) -> list[Any]:
    assert use.parser is not None
    parser = use.parser()
    return joined([*parser.push(use.opening + text), *parser.finish()])


def test_without_tools_there_is_only_the_format() -> None:
    assert plan(None, tools=None, takes_tools=False) == ToolUse(None)
    assert plan(None, tools=[], response_format=AS_NUMBER).guide == Guide(kind="json_schema", text=json.dumps(NUMBER))
    assert plan(None, tools=None, response_format={"type": "json_object"}).guide == Guide(kind="json_object")
    assert plan(None, tools=None, guided_regex="[ab]+").guide == Guide(kind="regex", text="[ab]+")


def test_tools_that_must_not_be_called_are_not_shown() -> None:
    assert plan("hermes", tool_choice="none") == ToolUse(None)


@pytest.mark.parametrize("form", ["hermes", "llama3", "kimi", "glm"])
def test_by_itself_an_answer_is_free(form: str) -> None:
    use = plan(form)
    assert (use.guide, use.opening, use.parallel) == (None, "", True)
    assert [tool.function.name for tool in use.tools] == ["weather", "ping"]
    assert plan(form, parallel_tool_calls=False).parallel is False


@pytest.mark.parametrize(
    ("form", "opening", "key"),
    [
        ("hermes", "<tool_call>\n", "arguments"),
        ("llama3", "", "parameters"),
        ("kimi", "", "arguments"),
        ("glm", "", "arguments"),
    ],
)
def test_a_call_that_must_be_made_is_held_to_the_schemas(tokenizer: Any, form: str, opening: str, key: str) -> None:
    use = plan(form, tool_choice="required")
    assert use.opening == opening
    for call, arguments in (("weather", '{"city": "Oslo"}'), ("ping", "{}")):
        text = json.dumps({"name": call, key: json.loads(arguments)})
        assert allows(use.guide, text, tokenizer)
        assert answer(use, text) == [(call, arguments)]
    for wrong in ("Hello", {}, {"name": "other", key: {}}, {"name": "weather", key: {"city": 3}}):
        assert not allows(use.guide, json.dumps(wrong), tokenizer)


def test_a_form_that_is_not_known_still_makes_calls_that_must_be_made(tokenizer: Any) -> None:
    use = plan(None, tool_choice="required")
    assert allows(use.guide, '{"name": "ping", "arguments": {}}', tokenizer)
    assert answer(use, '{"name": "ping", "arguments": {}}') == [("ping", "{}")]


def test_a_named_function_is_the_only_one(tokenizer: Any) -> None:
    use = plan("hermes", tool_choice=PING_CHOICE)
    assert allows(use.guide, '{"name": "ping", "arguments": {}}', tokenizer)
    assert not allows(use.guide, '{"name": "weather", "arguments": {"city": "Oslo"}}', tokenizer)
    assert [tool.function.name for tool in use.tools] == ["weather", "ping"]


@pytest.mark.parametrize("form", ["hermes", "llama3", None])
def test_with_a_format_an_answer_is_a_call_or_follows_it(tokenizer: Any, form: str | None) -> None:
    use = plan(form, response_format=AS_NUMBER)
    key = "parameters" if form == "llama3" else "arguments"
    call = json.dumps({"name": "weather", key: {"city": "Oslo"}})
    assert allows(use.guide, call, tokenizer)
    assert allows(use.guide, '{"number": 7}', tokenizer)
    assert not allows(use.guide, "7", tokenizer)
    assert answer(use, call) == [("weather", '{"city": "Oslo"}')]
    assert answer(use, '{"number": 7}') == ['{"number": 7}']
    assert not allows(plan(form, response_format={"type": "json_object"}).guide, "7", tokenizer)


@pytest.mark.parametrize(
    ("form", "changes", "param", "words"),
    [
        ("hermes", {"takes_tools": False}, "tools", "no place for tools"),
        (None, {}, "tools", "not known here; set tool_choice to required"),
        ("hermes", {"guided_regex": "a"}, "guided_regex", "cannot call tools"),
    ],
)
def test_what_cannot_be_is_refused(form: str | None, changes: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(ApiError, match=words) as caught:
        plan(form, **changes)
    assert (caught.value.status, caught.value.param) == (400, param)
