"""OpenAI's own client against the front."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pydantic
import pytest
from fronts import Script

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
MESSAGES: list[Any] = [{"role": "user", "content": "Rain?"}]


class Weather(pydantic.BaseModel):
    """What the model is asked to fill in; nested, so that its schema has references."""

    class Place(pydantic.BaseModel):
        city: str

    place: Place
    rain: bool


class WeatherTool(pydantic.BaseModel):
    """Looks out of the window."""

    city: str


TOOL: Any = openai.pydantic_function_tool(WeatherTool, name="weather")


def test_completions(client: openai.OpenAI, script: Script) -> None:
    script.answers, script.cached_tokens = ["one two", "one two"], 5
    whole = client.completions.create(model="m", prompt="hi", n=2, logprobs=1)
    assert [choice.text for choice in whole.choices] == ["one two", "one two"]
    assert whole.choices[1].logprobs is not None
    assert whole.usage is not None
    assert whole.usage.prompt_tokens_details is not None
    assert whole.usage.prompt_tokens_details.cached_tokens == 5
    stream = client.completions.create(model="m", prompt="hi", stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == "one two"


def test_chat_whole_and_streamed_agree(client: openai.OpenAI, script: Script) -> None:
    script.answers = ["It will rain.", "It will rain."]
    asked: dict[str, Any] = {"model": "m", "messages": MESSAGES, "logprobs": True, "top_logprobs": 1, "seed": 3}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text == whole.choices[0].message.content == "It will rain."
    assert chunks[-1].usage == whole.usage
    assert whole.choices[0].logprobs is not None
    assert whole.choices[0].logprobs.content is not None
    parts = [choice.logprobs.content or [] for chunk in chunks for choice in chunk.choices if choice.logprobs]
    assert [entry for part in parts for entry in part] == whole.choices[0].logprobs.content


def test_an_answer_can_be_sent_back_with_the_history(client: openai.OpenAI, script: Script) -> None:
    script.answers = [CALL, "It rains."]
    first = client.chat.completions.create(model="m", messages=MESSAGES, tools=[TOOL])
    message = first.choices[0].message
    assert message.tool_calls
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"}
    again = client.chat.completions.create(model="m", messages=[*MESSAGES, message, result], tools=[TOOL])
    dumped = client.chat.completions.with_raw_response
    assert again.choices[0].message.content == "It rains."
    script.answers = ["Yes."]
    dump: Any = message.model_dump()
    raw = dumped.create(model="m", messages=[*MESSAGES, dump, result], tools=[TOOL])
    assert raw.parse().choices[0].message.content == "Yes."


def test_the_stream_helper_puts_tool_calls_together(client: openai.OpenAI, script: Script) -> None:
    script.answers = [f"Let me look.\n{CALL}"]
    with client.chat.completions.stream(model="m", messages=MESSAGES, tools=[TOOL]) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"content.delta", "tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds
    message = final.choices[0].message
    assert message.content == "Let me look."
    assert message.tool_calls
    assert message.tool_calls[0].function.parsed_arguments == WeatherTool(city="Oslo")
    assert final.choices[0].finish_reason == "tool_calls"


def test_parse_follows_a_schema(client: openai.OpenAI, script: Script) -> None:
    script.answers = ['{"place": {"city": "Oslo"}, "rain": true}']
    parsed = client.chat.completions.parse(model="m", messages=MESSAGES, response_format=Weather)
    assert parsed.choices[0].message.parsed == Weather(place=Weather.Place(city="Oslo"), rain=True)
    guide = script.asked[0].options.sampling.guide
    assert guide is not None
    assert guide.kind == "json_schema"
    assert json.loads(guide.text)["properties"]["rain"]["type"] == "boolean"


def test_parse_reads_strict_tool_calls(client: openai.OpenAI, script: Script) -> None:
    script.answers = ['{"name": "weather", "arguments": {"city": "Oslo"}}']
    parsed = client.chat.completions.parse(model="m", messages=MESSAGES, tools=[TOOL], tool_choice="required")
    calls = parsed.choices[0].message.tool_calls
    assert calls
    assert calls[0].function.parsed_arguments == WeatherTool(city="Oslo")


def test_errors_are_the_clients_own_classes(client: openai.OpenAI, script: Script) -> None:
    for failure, kind in (
        ("[invalid_request] top_p is 7; it must be at most 1", openai.BadRequestError),
        ("[overloaded] too many requests wait", openai.RateLimitError),
        ("[unavailable] the engine process is down", openai.InternalServerError),
        ("[deadline] it had not ended in time", openai.APIStatusError),
    ):
        script.answers = [failure]
        with pytest.raises(kind) as caught:
            client.chat.completions.create(model="m", messages=MESSAGES)
        assert caught.value.request_id
    with pytest.raises(openai.NotFoundError, match="is not served here"):
        client.completions.create(model="other", prompt="hi")
    script.answers = ["so far so good [unavailable] the engine process ended"]
    with pytest.raises(openai.APIError, match="the engine process ended"):
        list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))


def test_a_busy_server_is_asked_again(base_url: str, script: Script) -> None:
    script.answers = ["[overloaded] too many requests wait", "at last"]
    with openai.OpenAI(base_url=base_url, api_key="none", max_retries=1) as patient:
        assert patient.completions.create(model="m", prompt="hi").choices[0].text == "at last"


def test_additions_go_in_extra_body(client: openai.OpenAI, script: Script) -> None:
    script.answers = ["ab"]
    extra = {"top_k": 4, "min_p": 0.1, "cache_salt": "tenant", "guided_regex": "[ab]+"}
    client.chat.completions.create(model="m", messages=MESSAGES, extra_body=extra, extra_headers={"x-request-id": "mine"})
    options = script.asked[0].options
    assert (options.sampling.top_k, options.sampling.min_p, options.cache_salt, options.request_id) == (
        4,
        0.1,
        "tenant",
        "mine",
    )


def test_the_asynchronous_client(base_url: str, script: Script) -> None:
    script.answers = ["one", "two three", CALL]

    async def run() -> None:
        async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
            whole = await client.chat.completions.create(model="m", messages=MESSAGES)
            assert whole.choices[0].message.content == "one"
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "two three"
            async with client.chat.completions.stream(model="m", messages=MESSAGES, tools=[TOOL]) as helper:
                final = await helper.get_final_completion()
            assert final.choices[0].message.tool_calls

    asyncio.run(run())
