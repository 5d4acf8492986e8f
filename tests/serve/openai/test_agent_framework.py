"""An agent framework's client against the front: Pydantic AI runs its own loop of calls and results."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pydantic
import pytest
from fronts import Script
from pydantic_ai import Agent, AgentRunResult, ModelRetry, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


class Trip(pydantic.BaseModel):
    """What the agent is to come up with."""

    city: str
    umbrella: bool


def agent(client: openai.AsyncOpenAI, **options: Any) -> Agent[None, Any]:
    model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
    made: Agent[None, Any] = Agent(model, instructions="Be brief.", **options)

    @made.tool_plain
    def nearest_city(country: str) -> str:
        """The nearest city of a country."""
        return {"Norway": "Oslo"}[country]

    @made.tool_plain(retries=2)
    def weather(city: str) -> str:
        """The weather of a city."""
        if city != "Oslo":
            raise ModelRetry("There is no such city.")
        return "rain"

    return made


def run(base_url: str, **options: Any) -> AgentRunResult[Any]:
    """Ask an agent a question."""

    async def ask() -> AgentRunResult[Any]:
        async with openai.AsyncOpenAI(base_url=base_url, api_key="none") as client:
            return await agent(client, **options).run("Where to, in Norway?")

    return asyncio.run(ask())


def test_a_loop_of_two_steps(base_url: str, script: Script, tokenizer: Any) -> None:
    script.answers = [
        call("nearest_city", country="Norway"),
        "Now the weather.\n" + call("weather", city="Bergen") + "\n" + call("weather", city="Oslo"),
        "Take an umbrella to Oslo.",
    ]
    result = run(base_url)
    assert result.output == "Take an umbrella to Oslo."
    assert result.usage.requests == 3
    assert result.usage.tool_calls == 2  # one of the three asked the model to try again
    shown = [tokenizer.decode(asked.prompt) for asked in script.asked]
    assert "nearest_city" in shown[0]
    assert '{"name": "nearest_city", "arguments": {"country": "Norway"}}\n</tool_call>\n<|tool|>Oslo\n' in shown[1]
    assert "There is no such city." in shown[2]
    assert shown[2].endswith("<|tool|>rain\n<|assistant|>")
    assert shown[2].startswith(shown[1])  # what is cached stays of use


def test_a_loop_that_is_streamed(base_url: str, script: Script) -> None:
    script.answers = [call("nearest_city", country="Norway"), call("weather", city="Oslo"), "Take an umbrella to Oslo."]

    async def ask() -> list[str]:
        async with (
            openai.AsyncOpenAI(base_url=base_url, api_key="none") as client,
            agent(client).run_stream("Where to?") as result,
        ):
            return [text async for text in result.stream_text(delta=True, debounce_by=None)]

    pieces = asyncio.run(ask())
    assert len(pieces) > 3
    assert "".join(pieces) == "Take an umbrella to Oslo."
    assert [asked.streaming for asked in script.asked] == [True] * 3


def test_a_tool_that_is_not_there_can_be_put_right(base_url: str, script: Script) -> None:
    script.answers = [call("forecast", city="Oslo"), call("weather", city="Oslo"), "Rain."]
    assert run(base_url).output == "Rain."


@pytest.mark.parametrize("output", [ToolOutput(Trip, name="plan"), PromptedOutput(Trip), NativeOutput(Trip)])
def test_an_output_of_a_type(base_url: str, script: Script, output: Any) -> None:
    """As a call that must be made, or as an answer that follows a format: either way the engine holds it to a schema."""
    trip = {"city": "Oslo", "umbrella": True}
    final = {"name": "plan", "arguments": trip} if isinstance(output, ToolOutput) else trip
    script.answers = ['{"name": "weather", "arguments": {"city": "Oslo"}}', json.dumps(final)]
    assert run(base_url, output_type=output).output == Trip(city="Oslo", umbrella=True)
    assert all(asked.options.sampling.guide is not None for asked in script.asked)
